// Frames of a link: JSON text → frame and back.
// Spec: L27, L28, L30–L32.   Pure.
//
// I1  Judged in this order: size, JSON, one `t`, a kind this sender has (else ignored), then its members.
// I2  A member that a frame of this kind has may occur once; members it does not have are ignored, however often.
// I3  `data` leaves as it came: a slice of the text, never parsed and written again (L31).

import type { FrameMembers, MemberReader } from "./link-frame-members.ts";
import { FRAMES_FROM, MEMBER_ORDER } from "./link-frame-members.ts";
import type { LinkFrame, LinkFramesFrom } from "./link-frame-types.ts";
import { scanElements } from "./json-parts.ts";
import { scanJson, type ScannedMember } from "./json-scan.ts";
import { stringText } from "./json-string.ts";
import { LINK_DATA_BYTES_MAX, LINK_FRAME_BYTES_MAX, NOW_BYTES_MAX } from "./link-limits.ts";
import type { LinkSender } from "./link-names.ts";

/** Why a text is no frame. Safe to log. Every one of them closes the link with 4400. */
export type FrameRefusal =
  | "too-large"
  | "not-json"
  | "not-an-object"
  | "no-kind"
  | "member-twice"
  | "member-missing"
  | "bad-member";

/** What a received text is. `ignored`: a kind that is unknown, or not for this sender to send. */
export type ParsedLinkFrame<Frame extends LinkFrame = LinkFrame> =
  | { readonly kind: "frame"; readonly frame: Frame }
  | { readonly kind: "ignored" }
  | {
      readonly kind: "malformed";
      readonly reason: FrameRefusal;
      /** The known member at fault. */ readonly member?: string;
    };

/**
 * Reads one text message. Never throws.
 *
 * @param text as received; bytes must be valid UTF-8, as WebSocket libraries check
 * @param from who sent it: the same kind differs by sender, and kinds of the other side are ignored
 */
export function parseLinkFrame<From extends LinkSender>(
  text: string | Uint8Array,
  from: From,
): ParsedLinkFrame<LinkFramesFrom[From]> {
  // A text of more characters than bytes are allowed needs no encoding to be too large.
  if (text.length > LINK_FRAME_BYTES_MAX) return malformed("too-large");
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  if (bytes.length > LINK_FRAME_BYTES_MAX) return malformed("too-large");
  const scan = scanJson(bytes, { depthMax: LINK_FRAME_BYTES_MAX });
  if (!scan.ok) return malformed("not-json");
  if (scan.kind !== "object") return malformed("not-an-object");
  const [kind, ...others] = scan.members.filter((member) => member.key === "t");
  if (others.length > 0) return malformed("member-twice", "t");
  if (kind?.kind !== "string") return malformed("no-kind");
  const t = stringText(bytes, kind.value.start, kind.value.end);
  const kinds: Readonly<Record<string, FrameMembers>> = FRAMES_FROM[from];
  const members = Object.hasOwn(kinds, t) ? kinds[t] : undefined;
  if (members === undefined) return { kind: "ignored" };
  return readMembers(bytes, t, members, scan.members) as ParsedLinkFrame<LinkFramesFrom[From]>;
}

/**
 * Writes a frame, members in the spec's order.
 *
 * @throws RangeError for one that its receiver would refuse as too large
 */
export function encodeLinkFrame(frame: LinkFrame): string {
  const { data, ...values } = { data: undefined, ...frame };
  const members = [`"t":"${frame.t}"`];
  for (const name of MEMBER_ORDER[frame.t]) {
    const value: unknown = values[name as keyof typeof values];
    if (name === "data") members.push(`"data":${data}`);
    else if (value !== undefined) members.push(`"${name}":${JSON.stringify(value)}`);
  }
  const text = `{${members.join(",")}}`;
  const dataBytes = "data" in frame ? byteLength(frame.data) : 0;
  if (byteLength(text) > LINK_FRAME_BYTES_MAX || dataBytes > dataBytesMax(frame.t)) {
    throw new RangeError(`a ${frame.t} frame above its size`);
  }
  return text;
}

/** Bytes of `data` that a frame of this kind may carry. Spec L27, L31. */
export function dataBytesMax(t: LinkFrame["t"]): number {
  return t === "now" ? NOW_BYTES_MAX : LINK_DATA_BYTES_MAX;
}

function readMembers(
  bytes: Uint8Array,
  t: string,
  members: FrameMembers,
  scanned: readonly ScannedMember[],
): ParsedLinkFrame {
  const frame: Record<string, unknown> = { t };
  for (const [name, reader] of Object.entries(members)) {
    const found = scanned.filter((member) => member.key === name);
    if (found.length > 1) return malformed("member-twice", name);
    const [member] = found;
    if (member === undefined) {
      if (reader.isOptional) continue;
      return malformed("member-missing", name);
    }
    const { start, end } = member.value;
    if (name === "data" && end - start > dataBytesMax(t as LinkFrame["t"]))
      return malformed("too-large", name);
    const value = readValue(bytes, member, reader);
    if (value === undefined) return malformed("bad-member", name);
    frame[name] = value;
  }
  return { kind: "frame", frame: frame as unknown as LinkFrame };
}

function readValue(bytes: Uint8Array, { kind, value }: ScannedMember, reader: MemberReader): unknown {
  const raw = DECODER.decode(bytes.subarray(value.start, value.end));
  if (reader.isRaw) return raw;
  // Nothing nested is parsed: a deep value costs some parsers their stack.
  if (kind === "object") return undefined;
  if (kind === "array" && scanElements(bytes, value).some((element) => element.kind !== "string"))
    return undefined;
  return reader.read(JSON.parse(raw));
}

/** Keeps no state between calls; never drops a byte order mark. */
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function malformed(reason: FrameRefusal, member?: string): ParsedLinkFrame<never> {
  return member === undefined ? { kind: "malformed", reason } : { kind: "malformed", reason, member };
}
