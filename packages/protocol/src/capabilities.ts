// The set of optional features a client declares on each request.
// Spec: R1–R3.   Pure.
//
// I1  A set belongs to one request (R3): nothing here remembers one. I2  Any violation empties the whole set (R2), so a
//     client cannot be half understood. I3  Names are compared exactly; unknown ones are kept.

import { CAPABILITIES_BYTES_MAX, CAPABILITIES_COUNT_MAX, CAPABILITY_NAME_BYTES_MAX } from "./limits.ts";

const NONE: ReadonlySet<string> = new Set();

/** RFC 9110 `tchar`, ASCII only. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Reads the capability set of one request. Never throws.
 *
 * @param fieldLines the values of the separate `X-Tunnel-Client-Capabilities` lines in order, one character per byte
 *   (as Node's rawHeaders gives them; its joined form adds a space that would count)
 * @returns the names; empty for no line and for any violation of R2
 */
export function parseCapabilities(fieldLines: readonly string[]): ReadonlySet<string> {
  const joined = fieldLines.join(",");
  if (joined.length > CAPABILITIES_BYTES_MAX) return NONE;
  const names = joined
    .split(",")
    .map(trimBlank)
    .filter((name) => name !== "");
  if (names.length > CAPABILITIES_COUNT_MAX) return NONE;
  return names.every(isCapabilityName) ? new Set(names) : NONE;
}

/**
 * The one field line that declares these names. Spec R1.
 *
 * @throws RangeError for a name or a number of names that R2 would make the receiver drop
 */
export function encodeCapabilities(names: readonly string[]): string {
  const line = names.join(",");
  const isSound =
    names.every(isCapabilityName) &&
    names.length <= CAPABILITIES_COUNT_MAX &&
    line.length <= CAPABILITIES_BYTES_MAX;
  if (!isSound) throw new RangeError("capabilities outside the bounds of R2");
  return line;
}

function isCapabilityName(name: string): boolean {
  return name.length <= CAPABILITY_NAME_BYTES_MAX && TOKEN.test(name);
}

/** Space and tab only: `trim` would take characters that R2 makes a violation. */
function trimBlank(text: string): string {
  return text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
}
