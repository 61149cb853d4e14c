// The agent-facing routes: metadata and poll. Responses are agent-answers.ts.
//
// Spec: T1, T2, T4, T8, T12, R2–R4, R23.

import {
  CAPABILITY_WRONG_CLUSTER,
  HEADER,
  parseCapabilities,
  parseInstanceId,
  type InstanceId,
} from "@moor/protocol";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../http/http-exchange.ts";
import { replyError, type Refusal } from "../http/reply-error.ts";
import { mintId } from "../mint-id.ts";
import type { KnownPlacement, PollId } from "../peer/peer-link.ts";
import { openPollingToken } from "../tokens/polling-token.ts";
import { authenticateAgent, type AuthenticatedAgent } from "./authenticate.ts";
import type { CallTable } from "./call-table.ts";
import type { EntryContext } from "./entry-context.ts";
import { parsePollQuery } from "./poll-query.ts";
import type { PollTable } from "./poll-table.ts";

export interface AgentApi {
  readonly context: EntryContext;
  readonly calls: CallTable;
  readonly polls: PollTable;
}

/** `GET /v1/tunnels/{id}`. Spec T1. */
export async function handleMetadata(
  api: AgentApi,
  exchange: HttpExchange,
  tunnelText: string,
): Promise<void> {
  const agent = await authenticateAgent(exchange, tunnelText, api.context.tenants);
  if (agent.kind === "refused") return replyError(exchange, agent.error, agent.headers);
  const { id, name, description } = agent.tunnel;
  exchange.reply(200, { ...NO_STORE, ...JSON_TYPE }, JSON.stringify({ id, name, description }));
}

/** `GET /v1/tunnels/{id}/poll`. Spec T4. */
export async function handlePoll(api: AgentApi, exchange: HttpExchange, tunnelText: string): Promise<void> {
  const { context, polls } = api;
  const agent = await authenticateAgent(exchange, tunnelText, context.tenants);
  if (agent.kind === "refused") return refusePoll(context, exchange, agent);
  const query = parsePollQuery(exchange.query);
  if (query.kind === "refused") return refusePoll(context, exchange, query);
  const { tunnel, key } = agent;
  const poll = {
    pollId: mintId("poll", context.runtime) as PollId,
    tunnel: tunnel.id,
    keyId: key.id,
    instance: instanceOf(exchange, agent),
    isCapable: isCapable(exchange),
    presented: presentedPlacement(context, exchange, agent),
    exchange,
    query,
  };
  polls.hold(poll, tunnel.placement);
}

function refusePoll(context: EntryContext, exchange: HttpExchange, refusal: Refusal): void {
  context.metrics.pollsEnded.inc("refused");
  replyError(exchange, refusal.error, refusal.headers);
}

/** Old clients name no instance: all processes behind one key then count as one. Spec T8. */
export function instanceOf(exchange: HttpExchange, agent: AuthenticatedAgent): InstanceId {
  const named = parseInstanceId(exchange.header(HEADER.instanceId.toLowerCase()) ?? "");
  return named ?? (`unnamed-${agent.key.id}` as InstanceId);
}

/** Whether this very request declares the correction capability. Spec R2, R3. */
function isCapable(exchange: HttpExchange): boolean {
  const lines = exchange.headerLines(HEADER.capabilities.toLowerCase());
  return lines.length > 0 && parseCapabilities(lines).has(CAPABILITY_WRONG_CLUSTER);
}

/** Where the poll's token points; a token that does not open, or occurs twice, is as none. Spec R23. */
function presentedPlacement(
  context: EntryContext,
  exchange: HttpExchange,
  agent: AuthenticatedAgent,
): KnownPlacement | undefined {
  const [token, ...more] = exchange.headerLines(HEADER.shardToken.toLowerCase());
  if (token === undefined || more.length > 0) return undefined;
  const placement = openPollingToken(context.pollingTokens, agent.tunnel.id, token);
  if (placement !== undefined) context.placements.learn(agent.tunnel.id, placement);
  return placement;
}
