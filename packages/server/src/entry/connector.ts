// The caller-facing connector: who may call, and which tunnel and channel.
//
// Spec: T3, T9, T15, L26.
// I1  Who may call is settled before a byte of the body is read.
// I2  Every refusal here happens before the call exists, so it was certainly not handed out.

import { DEFAULT_CHANNEL, parseChannelName, parseTunnelId, type ChannelName } from "@moor/protocol";
import { parseHomeTenant, type KeyRecord, type TunnelRecord } from "../directory/directory.ts";
import type { HttpExchange } from "../http/http-exchange.ts";
import { refuse, replyError, type Refusal } from "../http/reply-error.ts";
import { connectorKeyHash, judgeCaller, unavailable } from "./authenticate.ts";
import { answerPreflight, corsHeaders } from "./cors.ts";
import type { EntryContext } from "./entry-context.ts";
import { checkOpenAccess } from "./open-access.ts";
import { startCall, type Connector } from "./start-call.ts";

/** Handles `/v1/mcp/{id}[/{channel}]`, any method; the id is a tunnel's, or that of a home with a tunnel. Spec T9, L26. */
export async function handleConnector(
  connector: Connector,
  exchange: HttpExchange,
  tunnelText: string,
  channelText: string | undefined,
): Promise<void> {
  const { context } = connector;
  const headers = corsHeaders(exchange, context.settings.corsOrigins);
  if (answerPreflight(exchange, headers)) return;
  const target = await resolveTarget(context, exchange, tunnelText, channelText);
  const refusal = "kind" in target ? target : await startCall(connector, { exchange, ...target, headers });
  if (refusal === undefined) return;
  context.metrics.callsEnded.inc(refusal.error.code === "overloaded" ? "overloaded" : "refused");
  replyError(exchange, refusal.error, { ...headers, ...refusal.headers });
}

/** Tunnel and channel of a request that may use them, or why not. */
async function resolveTarget(
  context: EntryContext,
  exchange: HttpExchange,
  tunnelText: string,
  channelText: string | undefined,
): Promise<Refusal | { readonly tunnel: TunnelRecord; readonly channel: ChannelName }> {
  const id = parseTunnelId(tunnelText) ?? parseHomeTenant(tunnelText);
  if (id === undefined) return refuse("invalid_tunnel_id_format");
  const channel = channelText === undefined ? DEFAULT_CHANNEL : parseChannelName(channelText);
  if (channel === undefined) return refuse("invalid_channel_format");
  const facts = await context.tenants.lookUp(id, connectorKeyHash(exchange));
  if (facts.kind === "unavailable") return unavailable();
  const { tunnel, key } = facts;
  if (tunnel === undefined) return refuse("tunnel_not_found");
  if (exchange.method !== "POST" && exchange.method !== "DELETE") {
    return refuse("method_not_allowed", undefined, { headers: { Allow: "POST, DELETE" } });
  }
  return checkAccess(context, exchange, tunnel, key) ?? { tunnel, channel };
}

function checkAccess(
  context: EntryContext,
  exchange: HttpExchange,
  tunnel: TunnelRecord,
  key: KeyRecord | undefined,
): Refusal | undefined {
  switch (tunnel.access) {
    case "key":
      return judgeCaller(tunnel, key);
    case "passthrough":
      return undefined; // The MCP server authorises the caller's own Authorization.
    case "open":
      return checkOpenAccess(exchange, context.settings.isOpenAccessForced);
  }
}
