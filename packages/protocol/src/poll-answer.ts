// What the ending of one poll means: raw answer, fault or cancellation → outcome.
// Spec: R6, R7, R11, R14, R17, R18.   Pure.
//
// I1  Cancellation wins over everything else (R14). I2  A body cut short is a destination failure on any status; else
//     408 and 5xx are, by status alone. I3  An outcome holds nothing that must not be logged but a correction's token.

import { CORRECTION_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "./limits.ts";
import { fieldValues, parseCorrection, type CorrectionRefusal, type PollAnswerHead } from "./correction.ts";
import { scanElements } from "./json-parts.ts";
import { scanJson, type Slice } from "./json-scan.ts";
import { HEADER } from "./names.ts";
import { parseRetryAfter } from "./retry-after.ts";

/**
 * Why a poll got no complete answer. `connect`: refused, unreachable. `reset`: closed before a complete head. `bad-head`:
 * a head that cannot be parsed or is above 64 KiB. `deadline`: the poll's own, in any phase. `body-cut`: after the head.
 */
export type PollFault = "connect" | "tls" | "dns" | "reset" | "bad-head" | "deadline" | "body-cut";

/** How a body ended: as its framing announced, earlier, or because the reader had read past its own bound. */
export type BodyEnding = "complete" | "cut" | "stopped";

/** How one poll ended. */
export type PollEnding =
  | { readonly kind: "fault"; readonly fault: PollFault }
  | {
      readonly kind: "answer";
      readonly head: PollAnswerHead;
      /** After content decoding. */
      readonly body: Uint8Array;
      readonly bodyEnding: BodyEnding;
    };

/** What an ending means for routing. Only the first three kinds bear state (R16). */
export type PollOutcome =
  | {
      readonly kind: "success";
      /** Elements of `commands` in the answer's body. */ readonly commands: readonly Slice[];
    }
  | { readonly kind: "correction"; readonly token: string; readonly revision: number }
  | { readonly kind: "destination-failure" }
  | { readonly kind: "ordinary-error" }
  | { readonly kind: "malformed-correction"; readonly reason: CorrectionRefusal }
  | { readonly kind: "cancelled" };

/** Envelope, array and command around a message of JSON_DEPTH_MAX levels. */
const ENVELOPE_DEPTH_MAX = JSON_DEPTH_MAX + 3;

/**
 * Says what a poll's ending means.
 *
 * @param isCancelled whether the caller cancelled the poll, in whatever phase
 */
export function classifyPollAnswer(ending: PollEnding, isCancelled: boolean): PollOutcome {
  if (isCancelled) return { kind: "cancelled" };
  if (ending.kind === "fault" || ending.bodyEnding === "cut") return { kind: "destination-failure" };
  const { head, body } = ending;
  if (head.status === 408 || (head.status >= 500 && head.status <= 599))
    return { kind: "destination-failure" };
  if (head.status === 204) return { kind: "success", commands: [] };
  if (head.status === 200) return classifyEnvelope(body, ending.bodyEnding);
  if (head.status === 409) return classifyConflict(head, body, ending.bodyEnding);
  return { kind: "ordinary-error" };
}

/**
 * The wait an answer asks for: its single `Retry-After` on any status but 200 and 204, against its single `Date`.
 *
 * @param wallMs our clock, milliseconds since the epoch
 * @returns milliseconds, 0–60_000, or `undefined` if it asks for none that is valid. Spec R17
 */
export function retryAfterMsOf(head: PollAnswerHead, wallMs: number): number | undefined {
  if (head.status === 200 || head.status === 204) return undefined;
  const answerDate = onlyValue(head, HEADER.date);
  return parseRetryAfter(onlyValue(head, HEADER.retryAfter), { answerDate, wallMs });
}

function classifyEnvelope(body: Uint8Array, bodyEnding: BodyEnding): PollOutcome {
  const commands = bodyEnding === "complete" ? parsePollEnvelope(body) : undefined;
  return commands === undefined ? { kind: "ordinary-error" } : { kind: "success", commands };
}

/**
 * The commands of a 200 answer, `{"commands":[…]}`, unknown members beside it ignored; `undefined` for anything else,
 * `commands` twice included. What the commands hold is not judged here (T23).
 */
function parsePollEnvelope(body: Uint8Array): readonly Slice[] | undefined {
  const scan = scanJson(body, { depthMax: ENVELOPE_DEPTH_MAX });
  if (!scan.ok) return undefined;
  const [commands, ...others] = scan.members.filter((member) => member.key === "commands");
  if (commands?.kind !== "array" || others.length > 0) return undefined;
  return scanElements(body, commands.value).map((element) => element.value);
}

function classifyConflict(head: PollAnswerHead, body: Uint8Array, bodyEnding: BodyEnding): PollOutcome {
  const correction = parseCorrection(head, body, bodyEnding === "complete");
  if (correction.ok) return { kind: "correction", token: correction.token, revision: correction.revision };
  const isMeant = CODE_WAS_RIGHT[correction.reason] || fieldValues(head, HEADER.shardToken).length > 0;
  return isMeant || body.length > CORRECTION_BODY_BYTES_MAX
    ? { kind: "malformed-correction", reason: correction.reason }
    : { kind: "ordinary-error" };
}

/** Which refusals come after `error.code` was read as `wrong_cluster`. */
const CODE_WAS_RIGHT: Readonly<Record<CorrectionRefusal, boolean>> = {
  status: false,
  "body-too-large": false,
  "body-cut": false,
  "body-not-json": false,
  "error-member": false,
  code: false,
  "token-count": true,
  "token-value": true,
  revision: true,
  "body-token": true,
};

function onlyValue(head: PollAnswerHead, name: string): string | undefined {
  const values = fieldValues(head, name);
  return values.length === 1 ? values[0] : undefined;
}
