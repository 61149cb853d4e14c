// What a client keeps over restarts: whose it is, and the shard host to dial first.
// Spec: L12, L13.   Pure: the file or the browser's store is the client's.
//
// I1  Members this version does not know survive a read and a write in order, their values byte for byte.
// I2  The host is only text here: whether it counts is judged against the client's own base (L13).

import { JSON_DEPTH_MAX } from "./limits.ts";
import { parseHomeId, type HomeId } from "./link-names.ts";
import { scanJson, type ScannedMember } from "./json-scan.ts";

/** A link record, version 1. */
export interface LinkRecord {
  readonly home: HomeId;
  /** K; absent for none. Any text. */
  readonly host?: string | undefined;
  /** Members of a newer version, each as raw JSON `"key":value`. Default none. */
  readonly unknownMembers?: readonly string[] | undefined;
}

/**
 * Reads a link record.
 *
 * @returns `undefined` for a corrupt one (no JSON object, version other than 1, home or host of the wrong form, a known
 *   member twice), which is set aside and never stops a link. Spec L13
 */
export function parseLinkRecord(text: string): LinkRecord | undefined {
  const bytes = new TextEncoder().encode(text);
  const scan = scanJson(bytes, { depthMax: JSON_DEPTH_MAX });
  if (!scan.ok || scan.kind !== "object") return undefined;
  const known = new Map<string, unknown>();
  const unknownMembers: string[] = [];
  for (const member of scan.members) {
    const raw = rawValue(bytes, member);
    if (!KNOWN.includes(member.key)) unknownMembers.push(`${JSON.stringify(member.key)}:${raw}`);
    else if (known.has(member.key)) return undefined;
    else known.set(member.key, JSON.parse(raw));
  }
  const home = textOf(known.get("home"));
  const host = known.get("host");
  const homeId = home === undefined ? undefined : parseHomeId(home);
  if (known.get("v") !== 1 || homeId === undefined) return undefined;
  if (known.has("host") && typeof host !== "string") return undefined;
  return { home: homeId, host: textOf(host), unknownMembers };
}

/** A record as JSON text: `{"v":1,"home":…,"host":…}`, then the members this version does not know. Spec L12. */
export function encodeLinkRecord({ home, host, unknownMembers = [] }: LinkRecord): string {
  const members = [`"v":1`, `"home":${JSON.stringify(home)}`];
  if (host !== undefined) members.push(`"host":${JSON.stringify(host)}`);
  return `{${[...members, ...unknownMembers].join(",")}}`;
}

const KNOWN: readonly string[] = ["v", "home", "host"];

function rawValue(bytes: Uint8Array, { value }: ScannedMember): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(value.start, value.end));
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
