// The agent-facing routes: metadata, poll, response.
//
// Spec: T1, T2, T4, T6, T8, T12.

import {
  HEADER,
  isFinalResponseType,
  parseInstanceId,
  parseServerInfo,
  ProtocolError,
  RESPONSE_BODY_BYTES_MAX,
  type ErrorCode,
  type InstanceId,
} from "@moor/protocol";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../http/http-exchange.ts";
import { replyError } from "../http/reply-error.ts";
import { mintId } from "../mint-id.ts";
import type { ResponseOutcome, ResponseTypeLabel } from "../operator/metrics.ts";
import type { PollId } from "../peer/peer-link.ts";
import { RETRY_AFTER_S } from "../server-limits.ts";
import { openCommandToken } from "../tokens/command-token.ts";
import { parseAgentResponse, type AgentResponse } from "./agent-response.ts";
import { answerCall } from "./answer-call.ts";
import { bodyReservation } from "./body-reservation.ts";
import { authenticateAgent, type AuthenticatedAgent } from "./authenticate.ts";
import { unknownOutcome, type CallTable } from "./call-table.ts";
import type { EntryContext } from "./entry-context.ts";
import type { HeldCall } from "./held-call.ts";
import { parsePollQuery } from "./poll-query.ts";
import type { PollTable } from "./poll-table.ts";

export interface AgentApi {
  readonly context: EntryContext;
  readonly calls: CallTable;
  readonly polls: PollTable;
}

/** `GET /v1/tunnels/{id}`. Spec T1. */
export function handleMetadata(api: AgentApi, exchange: HttpExchange, tunnelText: string): void {
  const agent = authenticateAgent(exchange, tunnelText, api.context.replica);
  if (agent.kind === "refused") return replyError(exchange, agent.error, agent.headers);
  const { id, name, description } = agent.tunnel;
  exchange.reply(200, { ...NO_STORE, ...JSON_TYPE }, JSON.stringify({ id, name, description }));
}

/** `GET /v1/tunnels/{id}/poll`. Spec T4. */
export function handlePoll(api: AgentApi, exchange: HttpExchange, tunnelText: string): void {
  const { context, polls } = api;
  const agent = authenticateAgent(exchange, tunnelText, context.replica);
  if (agent.kind === "refused") return refusePoll(api, exchange, agent.error);
  const query = parsePollQuery(exchange.query);
  if (query.kind === "refused") return refusePoll(api, exchange, query.error);
  if (!agent.tunnel.isSeen) context.noteSeen(agent.tunnel.id);
  polls.hold({
    pollId: mintId("poll", context.runtime) as PollId,
    tunnel: agent.tunnel.id,
    keyId: agent.key.id,
    instance: instanceOf(exchange, agent),
    exchange,
    query,
    hops: 0,
    port: undefined,
    holdTimer: undefined,
  });
}

/** `POST /v1/tunnels/{id}/response`. Spec T6. */
export async function handleResponse(
  api: AgentApi,
  exchange: HttpExchange,
  tunnelText: string,
): Promise<void> {
  const { context } = api;
  const agent = authenticateAgent(exchange, tunnelText, context.replica);
  if (agent.kind === "refused") {
    context.metrics.responses.inc("unreadable", "unauthorized");
    return replyError(exchange, agent.error, agent.headers);
  }
  const reservedBytes = bodyReservation(exchange, RESPONSE_BODY_BYTES_MAX);
  if (!context.bodies.tryReserve(reservedBytes)) {
    return refuseResponse(api, exchange, "unreadable", "failed", overloaded());
  }
  try {
    await readResponse(api, exchange, agent);
  } finally {
    context.bodies.release(reservedBytes);
  }
}

async function readResponse(api: AgentApi, exchange: HttpExchange, agent: AuthenticatedAgent): Promise<void> {
  const { context, calls } = api;
  const token = exchange.headerLines(HEADER.shardToken.toLowerCase());
  const address =
    token.length === 1 ? openCommandToken(context.commandTokens, agent.tunnel.id, token[0] ?? "") : undefined;
  const call = address?.entry === context.entry ? calls.find(address.callId, agent.tunnel.id) : undefined;
  const body = await exchange.readBody(RESPONSE_BODY_BYTES_MAX);
  if (body.kind === "gone") return;
  if (address === undefined) {
    return refuseResponse(
      api,
      exchange,
      "unreadable",
      "mismatch",
      mismatch("the token is not of this tunnel"),
    );
  }
  if (body.kind === "too-large") {
    if (call !== undefined) calls.fail(call, new ProtocolError("agent_response_too_large"));
    const error = new ProtocolError("request_body_too_large");
    return refuseResponse(api, exchange, "unreadable", "too_large", error);
  }
  const parsed = parseAgentResponse(body.bytes);
  if (parsed.kind === "unreadable") {
    if (call !== undefined && parsed.isFinal) calls.fail(call, new ProtocolError("invalid_agent_response"));
    const error = new ProtocolError(parsed.code, { message: parsed.message });
    return refuseResponse(api, exchange, "unreadable", "invalid", error);
  }
  const { response } = parsed;
  if (response.requestId !== address.callId) {
    const error = mismatch("the token belongs to another request");
    return refuseResponse(api, exchange, response.type, "mismatch", error);
  }
  const instance = instanceOf(exchange, agent);
  noteActivity(context, agent, instance);
  // The call may have ended while the body was read: look again.
  const waiting = calls.find(address.callId, agent.tunnel.id);
  if (address.entry !== context.entry || waiting === undefined) {
    const error = new ProtocolError("pending_request_not_found");
    return refuseResponse(api, exchange, response.type, "not_pending", error);
  }
  takeResponse(api, exchange, { call: waiting, response, instance });
  context.metrics.responses.inc(response.type, "accepted");
  exchange.reply(200, { ...NO_STORE, ...JSON_TYPE }, '{"status":"ok"}');
}

interface TakenResponse {
  readonly call: HeldCall;
  readonly response: AgentResponse;
  readonly instance: InstanceId;
}

function takeResponse(api: AgentApi, exchange: HttpExchange, taken: TakenResponse): void {
  const { call, response } = taken;
  const { logger } = api.context;
  if (logger.isDebug) logger.debug("call-answered", { callId: call.callId, type: response.type });
  if (!isFinalResponseType(response.type)) {
    if (response.json !== undefined) call.answer.notify(response.json);
    if (call.answer.isEnded) api.calls.fail(call, unknownOutcome()); // A slow reader was cut.
    return;
  }
  const channels = parseServerInfo(exchange.headerLines(HEADER.serverInfo.toLowerCase()));
  const declared = channels?.find((channel) => channel.name === call.channel);
  const pinTo = declared?.procAffinity === true ? taken.instance : undefined;
  answerCall(api, call, response, pinTo);
}

function noteActivity(context: EntryContext, agent: AuthenticatedAgent, instance: InstanceId): void {
  context.shardPort(agent.tunnel.placement.shard)?.noteActivity(agent.tunnel.id, instance);
}

function refusePoll(api: AgentApi, exchange: HttpExchange, error: ProtocolError): void {
  api.context.metrics.pollsEnded.inc("refused");
  replyError(exchange, error, error.code === "unauthorized" ? { "WWW-Authenticate": "Bearer" } : {});
}

function refuseResponse(
  api: AgentApi,
  exchange: HttpExchange,
  type: ResponseTypeLabel,
  outcome: ResponseOutcome,
  error: ProtocolError,
): void {
  api.context.metrics.responses.inc(type, outcome);
  replyError(exchange, error);
}

/** Old clients name no instance: all processes behind one key then count as one. Spec T8. */
function instanceOf(exchange: HttpExchange, agent: AuthenticatedAgent): InstanceId {
  const named = parseInstanceId(exchange.header(HEADER.instanceId.toLowerCase()) ?? "");
  return named ?? (`unnamed-${agent.key.id}` as InstanceId);
}

function mismatch(message: string): ProtocolError {
  return new ProtocolError("tunnel_request_mismatch" satisfies ErrorCode, { message });
}

function overloaded(): ProtocolError {
  return new ProtocolError("overloaded", { retryAfterS: RETRY_AFTER_S });
}
