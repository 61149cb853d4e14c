// A correction: the 409 that tells a poll which token to carry from now on.
// Spec: R5, R6, R20.   Pure.
//
// I1  Accepted only if every clause of R6 holds; a refusal names the clause, never a part of the answer (R8).
// I2  The token is the header's; the body can only confirm it. I3  Content-Type is not judged.

import {
  COMMAND_TOKEN_BYTES_MAX,
  CORRECTION_BODY_BYTES_MAX,
  CORRECTION_DEPTH_MAX,
  REVISION_MAX,
} from "./limits.ts";
import { scanMembers } from "./json-parts.ts";
import { scanJson, type ScannedMember } from "./json-scan.ts";
import { stringText } from "./json-string.ts";
import { CODE_WRONG_CLUSTER, HEADER } from "./names.ts";

/** What came before a poll answer's body. */
export interface PollAnswerHead {
  readonly status: number;
  /** Raw field lines in order, repeated ones apart; values without surrounding blanks, one character per byte. */
  readonly headerLines: readonly (readonly [name: string, value: string])[];
}

/** The clause of R6 that a 409 or another answer fails. Safe to log: holds nothing of the answer. */
export type CorrectionRefusal =
  | "status"
  | "body-too-large"
  | "body-cut"
  | "body-not-json"
  | "error-member"
  | "code"
  | "token-count"
  | "token-value"
  | "revision"
  | "body-token";

/** A token and the revision it was given at, or why there is none. */
export type CorrectionResult =
  | { readonly ok: true; readonly token: string; readonly revision: number }
  | { readonly ok: false; readonly reason: CorrectionRefusal };

/**
 * Reads a poll answer as a correction. Spec R6.
 *
 * @param body the body after content decoding, up to one byte past CORRECTION_BODY_BYTES_MAX
 * @param bodyIsComplete whether the body ended as its framing announced
 */
export function parseCorrection(
  head: PollAnswerHead,
  body: Uint8Array,
  bodyIsComplete: boolean,
): CorrectionResult {
  if (head.status !== 409) return refuse("status");
  if (body.length > CORRECTION_BODY_BYTES_MAX) return refuse("body-too-large");
  if (!bodyIsComplete) return refuse("body-cut");
  const scan = scanJson(body, { depthMax: CORRECTION_DEPTH_MAX });
  if (!scan.ok) return refuse("body-not-json");
  const error = onlyMember(scan.members, "error");
  if (error?.kind !== "object") return refuse("error-member");
  const members = scanMembers(body, error.value);
  if (textOf(body, onlyMember(members, "code")) !== CODE_WRONG_CLUSTER) return refuse("code");

  const tokens = fieldValues(head, HEADER.shardToken);
  const [token] = tokens;
  if (token === undefined || tokens.length > 1) return refuse("token-count");
  if (!isPollingToken(token)) return refuse("token-value");
  const revision = revisionOf(body, onlyMember(members, "policy_revision"));
  if (revision === undefined) return refuse("revision");
  const confirmations = members.filter((member) => member.key === "shard_token");
  if (confirmations.length > 1) return refuse("body-token");
  if (confirmations.some((member) => textOf(body, member) !== token)) return refuse("body-token");
  return { ok: true, token, revision };
}

/** The body of a correction: code and revision, nothing else. Spec R5. Throws RangeError outside 0…2^53 − 1. */
export function encodeCorrectionBody(revision: number): string {
  if (!Number.isSafeInteger(revision) || revision < 0) throw new RangeError(`a revision of ${revision}`);
  return `{"error":{"code":"${CODE_WRONG_CLUSTER}","policy_revision":${revision}}}`;
}

/** Whether a text may be a polling token: 1–4096 characters of 0x21–0x7e, no comma. Spec R6. */
export function isPollingToken(text: string): boolean {
  return /^[\x21-\x2b\x2d-\x7e]{1,4096}$/.test(text);
}

/**
 * Whether a command's token can be echoed byte for byte as a header value: at most 8 KiB of UTF-8, no control characters
 * but inner tabs, no blank at either end (receivers strip those), no lone surrogate. Spaces, commas and the empty text
 * are fine. Spec R20.
 */
export function isCommandToken(text: string): boolean {
  if (text.length > COMMAND_TOKEN_BYTES_MAX || !text.isWellFormed()) return false;
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$/.test(text)) return false;
  return new TextEncoder().encode(text).length <= COMMAND_TOKEN_BYTES_MAX;
}

/** Values of all field lines of one name, in order. */
export function fieldValues(head: PollAnswerHead, name: string): readonly string[] {
  const wanted = name.toLowerCase();
  return head.headerLines.filter(([line]) => line.toLowerCase() === wanted).map(([, value]) => value);
}

function refuse(reason: CorrectionRefusal): CorrectionResult {
  return { ok: false, reason };
}

/** The member of this key if there is exactly one. */
function onlyMember(members: readonly ScannedMember[], key: string): ScannedMember | undefined {
  const found = members.filter((member) => member.key === key);
  return found.length === 1 ? found[0] : undefined;
}

function textOf(body: Uint8Array, member: ScannedMember | undefined): string | undefined {
  if (member?.kind !== "string") return undefined;
  return stringText(body, member.value.start, member.value.end);
}

/** A JSON integer literal 0…2^53 − 1: JSON itself has shut out leading zeros and plus signs. */
function revisionOf(body: Uint8Array, member: ScannedMember | undefined): number | undefined {
  if (member?.kind !== "number") return undefined;
  const literal = String.fromCharCode(
    ...body.subarray(member.value.start, Math.min(member.value.end, member.value.start + 17)),
  );
  if (!/^[0-9]{1,16}$/.test(literal)) return undefined;
  const revision = Number(literal);
  return revision <= REVISION_MAX ? revision : undefined;
}
