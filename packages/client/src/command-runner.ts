// Serves one command: finds its target, makes the call, and hands what comes back to the responder.
//
// Spec: T5, T6, T18–T20, T22, T23.
// I1  A target is contacted at most once for a command, and not at all for a channel that is not ours (T23).
// I2  Every command served ends in one final, unless its signal fires first (T18).

import { encodeTunnelFailure } from "@moor/protocol";
import type { Logger } from "@moor/runtime";
import type { Command } from "./command-parser.ts";
import type { FinalOutcome, Responder, ResponsePart } from "./responder.ts";
import type { HeaderBag } from "./targets/header-policy.ts";
import type { McpTarget, TargetAnswer, TargetReceipt } from "./targets/mcp-target.ts";

/** How a command ended; `unserved`: its time was over before there was anything to say. */
export type CommandOutcome = FinalOutcome | "unserved";

/** What serving one command takes. */
export interface CommandContext {
  /** The channel's server; undefined where the agent has no such channel. */
  readonly target: McpTarget | undefined;
  readonly responder: Responder;
  readonly logger: Logger;
  /** Fires when the command's time is over or the agent stops. */
  readonly signal: AbortSignal;
}

/** Serves one command. Never rejects. */
export async function runCommand(command: Command, context: CommandContext): Promise<CommandOutcome> {
  const final = await finalOf(command, context).catch((error: unknown) => {
    // A bug of ours: told to the caller now rather than by its deadline.
    const name = error instanceof Error ? error.name : typeof error;
    context.logger.error("command-broken", { name });
    return agentFailure(command, 502, "internal");
  });
  if (final === undefined || context.signal.aborted) return "unserved";
  return context.responder.finish(final);
}

/** Id of a command's message as JSON text; `null` where it has none. */
export function rawIdOf({ message }: Command): string {
  return message?.shape.kind === "request" ? message.shape.rawId : "null";
}

async function finalOf(command: Command, context: CommandContext): Promise<ResponsePart | undefined> {
  const { target, signal } = context;
  if (target === undefined) return agentFailure(command, 400, "unknown_channel");
  switch (command.type) {
    case "jsonrpc":
      return jsonRpcFinal(command, target, context);
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
  { responder, signal }: CommandContext,
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

/** A final of the agent's own making: no target was asked, or none could be. */
function agentFailure(command: Command, code: number, kind: "unknown_channel" | "internal"): ResponsePart {
  const failure = {
    version: 1,
    source: "client_internal",
    transport_error_kind: kind,
    upstream_response_received: false,
  } as const;
  const json = Buffer.from(encodeTunnelFailure(rawIdOf(command), code, failure));
  return { type: finalType(command), code, json };
}

function finalType({ type, message }: Command): ResponsePart["type"] {
  switch (type) {
    case "session_termination":
      return "session_termination_response";
    case "oauth_discovery":
      return "oauth_discovery_response";
    case "jsonrpc":
      return message?.shape.kind === "request" ? "jsonrpc_response" : "notify_ack";
  }
}

function withoutContentType(headers: HeaderBag): HeaderBag {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "Content-Type"));
}

/** The target's Content-Type spoke of a body that is not passed on. */
function asJson(headers: HeaderBag): HeaderBag {
  return { ...headers, "Content-Type": ["application/json"] };
}
