// What an entry does with an answer to a call it holds.
//
// Spec: T6. Order of judgement: the token, then the request it names, then the content.

import { isFinalResponseType, ProtocolError } from "@moor/protocol";
import type { AnswerOutcome, ArrivedAnswer } from "./answer-relay.ts";
import { answerCall } from "./answer-call.ts";
import { unknownOutcome, type CallTable } from "./call-table.ts";
import type { EntryContext } from "./entry-context.ts";

/** Takes an answer at the entry that its token names. */
export function takeAnswer(
  entry: { readonly context: EntryContext; readonly calls: CallTable },
  answer: ArrivedAnswer,
): Exclude<AnswerOutcome, "unavailable"> {
  const { context, calls } = entry;
  const callId = context.commandTokens.open(answer.tunnel, answer.token);
  if (callId === undefined) return "mismatch";
  const call = calls.find(callId, answer.tunnel);
  const { content } = answer;
  if (content.kind === "unusable") {
    if (call !== undefined && content.isFinal) calls.fail(call, new ProtocolError(content.code));
    return "accepted";
  }
  const { response, instance } = content;
  if (response.requestId !== callId) return "mismatch";
  if (call === undefined) return "not-pending";
  if (context.logger.isDebug) context.logger.debug("call-answered", { callId, type: response.type });
  if (isFinalResponseType(response.type)) {
    answerCall(entry, call, response, content.affineChannels.includes(call.channel) ? instance : undefined);
  } else {
    if (response.json !== undefined) call.answer.notify(response.json);
    if (call.answer.isEnded) calls.fail(call, unknownOutcome()); // A slow reader was cut.
  }
  return "accepted";
}
