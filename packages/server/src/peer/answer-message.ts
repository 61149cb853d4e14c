// An agent's answer as it travels from the node where it arrived to the node that holds its call.
//
// Spec: T6; docs/protocol/peer-link.md. `resp_json` is the payload: its bytes are not touched.

import { isResponseType } from "@moor/protocol";
import type { AnswerOutcome, ArrivedAnswer } from "../entry/answer-relay.ts";
import { MalformedHead, read, type RawHead } from "./peer-messages.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

/** The message for an answer. */
export function encodeAnswer({ tunnel, token, content }: ArrivedAnswer): PeerMessage {
  const head = { t: "answer", tunnel, token };
  if (content.kind === "unusable") {
    return { head: { ...head, unusable: content.code, isFinal: content.isFinal } };
  }
  const { response, instance, affineChannels } = content;
  const { requestId, type, code, headers, json } = response;
  const fields = { instance, affineChannels, requestId, type, code, headers: Object.fromEntries(headers) };
  return {
    head: { ...head, ...fields, hasJson: json !== undefined },
    ...(json === undefined ? {} : { payload: json }),
  };
}

/** The answer in a message. */
export function readAnswer({ head, payload }: PeerMessage): ArrivedAnswer {
  const to = { tunnel: read.tunnel(head), token: read.text(head, "token") };
  const unusable = read.optionalText(head, "unusable");
  if (unusable === "invalid_agent_response" || unusable === "agent_response_too_large") {
    return { ...to, content: { kind: "unusable", code: unusable, isFinal: read.flag(head, "isFinal") } };
  }
  const type = read.text(head, "type");
  if (!isResponseType(type)) throw new MalformedHead("type");
  const headers = read.object(head, "headers");
  const response = {
    requestId: read.text(head, "requestId"),
    type,
    code: read.number(head, "code"),
    headers: new Map(Object.keys(headers).map((name) => [name, read.texts(headers, name)])),
    json: read.flag(head, "hasJson") ? (payload ?? new Uint8Array()) : undefined,
  };
  const affineChannels = read.texts(head, "affineChannels");
  return { ...to, content: { kind: "response", response, instance: read.instance(head), affineChannels } };
}

const OUTCOMES: readonly string[] = ["accepted", "not-pending", "mismatch"];

/** What the other node said of an answer. */
export function readAnswerOutcome(head: RawHead): AnswerOutcome {
  const outcome = read.text(head, "outcome");
  return OUTCOMES.includes(outcome) ? (outcome as AnswerOutcome) : "unavailable";
}
