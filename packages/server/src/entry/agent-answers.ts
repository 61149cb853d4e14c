// The agent-facing route for answers: reads the body once and takes it to the call, here or at another node.
//
// Spec: T2, T6, T12, R20.

import { HEADER, parseServerInfo, ProtocolError, RESPONSE_BODY_BYTES_MAX } from "@moor/protocol";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../http/http-exchange.ts";
import { replyError } from "../http/reply-error.ts";
import type { ResponseOutcome, ResponseTypeLabel } from "../operator/metrics.ts";
import type { EntryId } from "../peer/peer-link.ts";
import { RETRY_AFTER_S } from "../server-limits.ts";
import { commandTokenEntry } from "../tokens/command-token.ts";
import { instanceOf, type AgentApi } from "./agent-api.ts";
import { parseAgentResponse } from "./agent-response.ts";
import type { AnswerOutcome, ArrivedAnswer } from "./answer-relay.ts";
import { authenticateAgent, type AuthenticatedAgent } from "./authenticate.ts";
import { bodyReservation } from "./body-reservation.ts";
import { takeAnswer } from "./take-answer.ts";

/** `POST /v1/tunnels/{id}/response`. Spec T6. */
export async function handleResponse(
  api: AgentApi,
  exchange: HttpExchange,
  tunnelText: string,
): Promise<void> {
  const { context } = api;
  const agent = await authenticateAgent(exchange, tunnelText, context.tenants);
  if (agent.kind === "refused") {
    context.metrics.responses.inc("unreadable", "unauthorized");
    return replyError(exchange, agent.error, agent.headers);
  }
  const reservedBytes = bodyReservation(exchange, RESPONSE_BODY_BYTES_MAX);
  if (!context.bodies.tryReserve(reservedBytes)) {
    return refuse(api, exchange, "unreadable", "failed", "overloaded");
  }
  try {
    await readResponse(api, exchange, agent);
  } finally {
    context.bodies.release(reservedBytes);
  }
}

async function readResponse(api: AgentApi, exchange: HttpExchange, agent: AuthenticatedAgent): Promise<void> {
  const body = await exchange.readBody(RESPONSE_BODY_BYTES_MAX);
  if (body.kind === "gone") return;
  const [token, ...more] = exchange.headerLines(HEADER.shardToken.toLowerCase());
  const entry = token === undefined || more.length > 0 ? undefined : commandTokenEntry(token);
  if (token === undefined || entry === undefined) {
    return refuse(api, exchange, "unreadable", "mismatch", "tunnel_request_mismatch");
  }
  const to = { tunnel: agent.tunnel.id, token };
  if (body.kind === "too-large") {
    const content = { kind: "unusable", code: "agent_response_too_large", isFinal: true } as const;
    await deliver(api, entry, { ...to, content });
    return refuse(api, exchange, "unreadable", "too_large", "request_body_too_large");
  }
  const parsed = parseAgentResponse(body.bytes);
  if (parsed.kind === "unreadable") {
    const { isFinal } = parsed;
    await deliver(api, entry, {
      ...to,
      content: { kind: "unusable", code: "invalid_agent_response", isFinal },
    });
    return refuse(api, exchange, "unreadable", "invalid", parsed.code, parsed.message);
  }
  const { response } = parsed;
  const instance = instanceOf(exchange, agent);
  const placement = api.context.placements.best(agent.tunnel.id, agent.tunnel.placement);
  if (placement !== undefined)
    api.context.shardPort(placement.shard)?.noteActivity(agent.tunnel.id, instance);
  const affineChannels = affineChannelsOf(exchange);
  const content = { kind: "response", response, instance, affineChannels } as const;
  replyOutcome(api, exchange, response.type, await deliver(api, entry, { ...to, content }));
}

function deliver(
  api: AgentApi,
  entry: EntryId,
  answer: ArrivedAnswer,
): Promise<AnswerOutcome> | AnswerOutcome {
  return entry === api.context.entry ? takeAnswer(api, answer) : api.context.answers.deliver(entry, answer);
}

/** Channels whose sessions live in the sender's process. Spec T8. */
function affineChannelsOf(exchange: HttpExchange): readonly string[] {
  const channels = parseServerInfo(exchange.headerLines(HEADER.serverInfo.toLowerCase()));
  return (channels ?? []).filter((channel) => channel.procAffinity).map((channel) => channel.name);
}

function replyOutcome(
  api: AgentApi,
  exchange: HttpExchange,
  type: ResponseTypeLabel,
  outcome: AnswerOutcome,
): void {
  switch (outcome) {
    case "accepted":
      api.context.metrics.responses.inc(type, "accepted");
      exchange.reply(200, { ...NO_STORE, ...JSON_TYPE }, '{"status":"ok"}');
      return;
    case "not-pending":
      return refuse(api, exchange, type, "not_pending", "pending_request_not_found");
    case "mismatch":
      return refuse(api, exchange, type, "mismatch", "tunnel_request_mismatch");
    case "unavailable":
      return refuse(api, exchange, type, "failed", "tunnel_transport_unavailable");
  }
}

function refuse(
  api: AgentApi,
  exchange: HttpExchange,
  type: ResponseTypeLabel,
  outcome: ResponseOutcome,
  code: ConstructorParameters<typeof ProtocolError>[0],
  message?: string,
): void {
  api.context.metrics.responses.inc(type, outcome);
  const error = new ProtocolError(code, message === undefined ? {} : { message });
  const isTransient = error.status === 503;
  replyError(exchange, isTransient ? new ProtocolError(code, { retryAfterS: RETRY_AFTER_S }) : error);
}
