// Turns an agent's final into the end of its call.
//
// Spec: T6, T8 (sealed session ids), T9 (202), T11.

import { JSON_DEPTH_MAX, ProtocolError, scanJson, type InstanceId } from "@moor/protocol";
import { sealSessionId } from "../tokens/session-token.ts";
import type { AgentResponse } from "./agent-response.ts";
import type { CallTable } from "./call-table.ts";
import { callerStatus, type FinalAnswer } from "./caller-answer.ts";
import type { EntryContext } from "./entry-context.ts";
import type { HeldCall } from "./held-call.ts";

/**
 * Ends `call` with the agent's final.
 *
 * @param pinTo instance that declared `proc_affinity` for the call's channel: a session opened by this answer is
 *   sealed to it
 */
export function answerCall(
  entry: { readonly context: EntryContext; readonly calls: CallTable },
  call: HeldCall,
  response: AgentResponse,
  pinTo: InstanceId | undefined,
): void {
  const { calls, context } = entry;
  const isError = callerStatus(response.code, response.json !== undefined) >= 400;
  if (call.kind.kind === "one-way" && !isError) {
    return calls.finish(call, "acknowledged", () => call.answer.acknowledge());
  }
  if (call.kind.kind === "request" && response.json === undefined && !isError) {
    const message = "the agent's final carries no message";
    return calls.fail(call, new ProtocolError("invalid_agent_response", { message }));
  }
  const final: FinalAnswer = {
    code: response.code,
    headers: sessionHeaders(context, call, response, isError ? undefined : pinTo),
    body: response.json,
  };
  calls.finish(call, "answered", () => call.answer.final(final));
}

/** The final's headers, its session id sealed where the session lives in one process. Spec T8. */
function sessionHeaders(
  context: EntryContext,
  call: HeldCall,
  response: AgentResponse,
  pinTo: InstanceId | undefined,
): FinalAnswer["headers"] {
  if (pinTo === undefined || call.kind.kind !== "request" || !call.kind.isInitialize) return response.headers;
  if (response.json === undefined || isRpcError(response.json)) return response.headers;
  const targetSessionId = response.headers.get("mcp-session-id")?.[0];
  const session = { channel: call.channel, instance: pinTo, targetSessionId };
  const sealed = sealSessionId(context.sessionTokens, call.tunnel, session);
  if (sealed === undefined) return response.headers;
  return new Map([...response.headers, ["mcp-session-id", [sealed]]]);
}

/** Whether a sound JSON-RPC answer is an error: such an `initialize` opened no session. */
function isRpcError(json: Uint8Array): boolean {
  const scanned = scanJson(json, { depthMax: JSON_DEPTH_MAX });
  return scanned.ok && scanned.members.some((member) => member.key === "error");
}
