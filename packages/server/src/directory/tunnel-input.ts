// What a tunnel and a key may be called and given.
//
// Spec: T1, T7, T10.   Refused values are never repeated in the message.

import {
  COMMAND_DEADLINE_MS_DEFAULT,
  COMMAND_DEADLINE_MS_MAX,
  COMMAND_DEADLINE_MS_MIN,
  ProtocolError,
} from "@moor/protocol";
import { ACCESS_MODES, type AccessMode, type TunnelInput } from "./directory.ts";

/** Longest name of a tunnel or label of a key, UTF-16 units. */
export const NAME_CHARS_MAX = 128;
/** Longest description of a tunnel, UTF-16 units. */
export const DESCRIPTION_CHARS_MAX = 1_024;

/** Throws `invalid_request` with `param` for the first field of a tunnel that cannot be used. */
export function assertTunnelInput(input: TunnelInput): void {
  const { name, description, access, deadlineMs } = input;
  if (name !== undefined) assertText("name", name, 1, NAME_CHARS_MAX);
  if (description !== undefined) assertText("description", description, 0, DESCRIPTION_CHARS_MAX);
  if (access !== undefined && !ACCESS_MODES.includes(access)) {
    throw invalid("access", `access is one of ${ACCESS_MODES.join(", ")}`);
  }
  if (deadlineMs !== undefined) assertDeadline(deadlineMs);
}

/** Throws `invalid_request` for a label that cannot be used. */
export function assertKeyLabel(label: string): void {
  assertText("label", label, 0, NAME_CHARS_MAX);
}

/** `input` with its defaults. `name` falls back to `tunnel-` and the first 8 digits of `id`. */
export function completeTunnelInput(
  id: string,
  input: TunnelInput,
): { name: string; description: string; access: AccessMode; deadlineMs: number } {
  return {
    name: input.name ?? id.replace("_", "-").slice(0, "tunnel-".length + 8),
    description: input.description ?? "",
    access: input.access ?? "key",
    deadlineMs: input.deadlineMs ?? COMMAND_DEADLINE_MS_DEFAULT,
  };
}

function assertDeadline(deadlineMs: number): void {
  if (
    Number.isInteger(deadlineMs) &&
    deadlineMs >= COMMAND_DEADLINE_MS_MIN &&
    deadlineMs <= COMMAND_DEADLINE_MS_MAX
  ) {
    return;
  }
  throw invalid(
    "deadline",
    `deadline is whole milliseconds from ${COMMAND_DEADLINE_MS_MIN / 1000}s to ${COMMAND_DEADLINE_MS_MAX / 1000}s`,
  );
}

/** Throws `invalid_request` for a text that is too short, too long, or cannot be shown on one line. */
export function assertText(param: string, text: string, charsMin: number, charsMax: number): void {
  if (text.length < charsMin || text.length > charsMax) {
    throw invalid(param, `${param} has ${charsMin} to ${charsMax} characters`);
  }
  // Control characters would break tables, terminals and log readers; lone surrogates do not survive storage.
  if (/\p{Cc}/u.test(text) || !text.isWellFormed()) {
    throw invalid(param, `${param} has no control characters and is well-formed Unicode`);
  }
}

function invalid(param: string, message: string): ProtocolError {
  return new ProtocolError("invalid_request", { param, message });
}
