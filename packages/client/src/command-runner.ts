// Serves one command: finds its target, makes the call, and hands what comes back to the responder.
//
// Spec: T5, T6, T18–T20, T22, T23.
// I1  A target is contacted at most once for a command, and not at all for a channel that is not ours (T23).
// I2  Every command served ends in one final, unless its signal fires first (T18).

import { encodeTunnelFailure } from "@moor/protocol";
import type { Command } from "./command-parser.ts";
import type { FinalOutcome, Responder, ResponsePart } from "./responder.ts";
import type { McpTarget, TargetAnswer, TargetReceipt } from "./targets/mcp-target.ts";

/** How a command ended; `unserved`: its time was over before there was anything to say. */
export type CommandOutcome = FinalOutcome | "unserved";

/** Serves `command` through `target` (undefined: no such channel here). Never rejects. */
export async function runCommand(
  command: Command,
  target: McpTarget | undefined,
  responder: Responder,
  signal: AbortSignal,
): Promise<CommandOutcome> {
  const final =
    target === undefined ? unknownChannel(command) : await finalOf(command, target, responder, signal);
  if (final === undefined || signal.aborted) return "unserved";
  return responder.finish(final);
}

/** Id of a command's message as JSON text; `null` where it has none. */
export function rawIdOf({ message }: Command): string {
  return message?.shape.kind === "request" ? message.shape.rawId : "null";
}

async function finalOf(
  command: Command,
  target: McpTarget,
  responder: Responder,
  signal: AbortSignal,
): Promise<ResponsePart | undefined> {
  switch (command.type) {
    case "jsonrpc":
      return jsonRpcFinal(command, target, responder, signal);
    case "session_termination": {
      const receipt = await target.terminate(command.headers, signal);
      return receiptFinal("session_termination_response", 200, receipt);
    }
    case "oauth_discovery":
      return answerFinal("oauth_discovery_response", command, await target.discover(signal));
  }
}

async function jsonRpcFinal(
  command: Command,
  target: McpTarget,
  responder: Responder,
  signal: AbortSignal,
): Promise<ResponsePart | undefined> {
  const { message, headers } = command;
  if (message === undefined) return undefined;
  const { bytes, shape } = message;
  if (shape.kind !== "request") {
    return receiptFinal("notify_ack", 202, await target.notify({ bytes, headers }, signal));
  }
  const answer = await target.call(
    { bytes, headers, rawId: shape.rawId },
    (json, headers) => responder.notify({ type: "jsonrpc_notify", code: 200, headers, json }),
    signal,
  );
  return answerFinal("jsonrpc_response", command, answer);
}

function answerFinal(
  type: ResponsePart["type"],
  command: Command,
  answer: TargetAnswer,
): ResponsePart | undefined {
  switch (answer.kind) {
    case "aborted":
      return undefined;
    case "response":
      return { type, code: answer.status, headers: answer.headers, json: answer.json };
    case "failure": {
      const json = Buffer.from(encodeTunnelFailure(rawIdOf(command), answer.status, answer.failure));
      return { type, code: answer.status, headers: asJson(answer.headers), json };
    }
  }
}

function receiptFinal(
  type: ResponsePart["type"],
  acceptedCode: number,
  receipt: TargetReceipt,
): ResponsePart | undefined {
  switch (receipt.kind) {
    case "aborted":
      return undefined;
    case "accepted":
      return { type, code: acceptedCode, headers: withoutContentType(receipt.headers) };
    case "failure":
      return { type, code: receipt.status, headers: withoutContentType(receipt.headers) };
  }
}

function unknownChannel(command: Command): ResponsePart {
  const type = command.type === "session_termination" ? "session_termination_response" : finalType(command);
  const failure = {
    version: 1,
    source: "client_internal",
    transport_error_kind: "unknown_channel",
    upstream_response_received: false,
  } as const;
  return { type, code: 400, json: Buffer.from(encodeTunnelFailure(rawIdOf(command), 400, failure)) };
}

function finalType({ type, message }: Command): ResponsePart["type"] {
  if (type === "oauth_discovery") return "oauth_discovery_response";
  return message?.shape.kind === "request" ? "jsonrpc_response" : "notify_ack";
}

function withoutContentType(headers: TargetAnswerHeaders): TargetAnswerHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "Content-Type"));
}

/** The target's Content-Type spoke of a body that is not passed on. */
function asJson(headers: TargetAnswerHeaders): TargetAnswerHeaders {
  return { ...headers, "Content-Type": ["application/json"] };
}

type TargetAnswerHeaders = Extract<TargetAnswer, { kind: "response" }>["headers"];
