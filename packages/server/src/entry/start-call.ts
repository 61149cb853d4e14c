// A request whose right to call is settled becomes a call: body, session, deadline.
//
// Spec: T8, T9, T10, T11, T13.
// I1  Every refusal here happens before the call exists, so it was certainly not handed out.
// I2  Bytes that are reserved for a body are the call's, or are given back.

import {
  CALL_BODY_BYTES_MAX,
  HEADER,
  type ChannelName,
  type CommandType,
  type InstanceId,
} from "@moor/protocol";
import type { TunnelRecord } from "../directory/directory.ts";
import type { HttpExchange, ReplyHeaders } from "../http/http-exchange.ts";
import { refuse, type Refusal } from "../http/reply-error.ts";
import { mintId } from "../mint-id.ts";
import type { CallId } from "../peer/peer-link.ts";
import { RETRY_AFTER_S } from "../server-limits.ts";
import { openSessionId } from "../tokens/session-token.ts";
import { parseAccept } from "./accepted-types.ts";
import { bodyReservation } from "./body-reservation.ts";
import type { CallTable } from "./call-table.ts";
import { CallerAnswer, type AcceptedTypes } from "./caller-answer.ts";
import { parseCallerMessage } from "./caller-message.ts";
import { encodeCommand } from "./command-encoding.ts";
import type { EntryContext } from "./entry-context.ts";
import { forwardedHeaders, type CommandHeaders } from "./forwarded-headers.ts";
import type { CallKind, HeldCall } from "./held-call.ts";

/** What the connector's routes work with. */
export interface Connector {
  readonly context: EntryContext;
  readonly calls: CallTable;
}

/** A caller's request whose right to call is settled. */
export interface AdmittedCaller {
  readonly exchange: HttpExchange;
  readonly tunnel: TunnelRecord;
  readonly channel: ChannelName;
  /** CORS headers of every answer. */
  readonly headers: ReplyHeaders;
}

/** Makes a call of an admitted caller's request, or says why not. The rest is the call table's. */
export async function startCall(connector: Connector, caller: AdmittedCaller): Promise<Refusal | undefined> {
  const { context } = connector;
  if (context.isLeaving()) return refuse("node_draining", undefined, { retryAfterS: RETRY_AFTER_S });
  return caller.exchange.method === "DELETE"
    ? startTermination(connector, caller)
    : startMessage(connector, caller);
}

function startTermination(connector: Connector, caller: AdmittedCaller): Refusal | undefined {
  if (caller.exchange.header("mcp-session-id") === undefined) return refuse("missing_mcp_session_id");
  return submit(connector, caller, {
    commandType: "session_termination",
    kind: { kind: "session-termination" },
    rpcId: undefined,
    accepts: parseAccept(caller.exchange.header("accept")),
    payload: undefined,
    reservedBytes: 0,
  });
}

async function startMessage(connector: Connector, caller: AdmittedCaller): Promise<Refusal | undefined> {
  const { exchange } = caller;
  const { bodies } = connector.context;
  if (!/^application\/json\s*(;|$)/i.test(exchange.header("content-type") ?? "")) {
    return refuse("unsupported_media_type");
  }
  const accepts = parseAccept(exchange.header("accept"));
  if (!accepts.json && !accepts.sse) return refuse("not_acceptable");
  const reservedBytes = bodyReservation(exchange, CALL_BODY_BYTES_MAX);
  if (!bodies.tryReserve(reservedBytes))
    return refuse("overloaded", undefined, { retryAfterS: RETRY_AFTER_S });
  const read = await readMessage(exchange);
  if (read.kind !== "message") {
    bodies.release(reservedBytes);
    return read.kind === "gone" ? undefined : read;
  }
  // A body of undeclared length was charged as the largest: from here on it counts as what it is.
  const { message, bytes: payload } = read;
  bodies.release(reservedBytes - payload.byteLength);
  return submit(connector, caller, {
    commandType: "jsonrpc",
    ...message,
    accepts,
    payload,
    reservedBytes: payload.byteLength,
  });
}

type ReadMessage =
  | {
      readonly kind: "message";
      readonly message: { readonly kind: CallKind; readonly rpcId: string | undefined };
      readonly bytes: Uint8Array;
    }
  | { readonly kind: "gone" }
  | Refusal;

async function readMessage(exchange: HttpExchange): Promise<ReadMessage> {
  const body = await exchange.readBody(CALL_BODY_BYTES_MAX);
  if (body.kind === "gone") return body;
  if (body.kind === "too-large") return refuse("request_body_too_large");
  const message = parseCallerMessage(body.bytes);
  if (message.kind === "refused") return message;
  const { callKind, rpcId } = message;
  return { kind: "message", message: { kind: callKind, rpcId }, bytes: body.bytes };
}

interface NewCall {
  readonly commandType: CommandType;
  readonly kind: CallKind;
  readonly rpcId: string | undefined;
  readonly accepts: AcceptedTypes;
  readonly payload: Uint8Array | undefined;
  readonly reservedBytes: number;
}

function submit(connector: Connector, caller: AdmittedCaller, call: NewCall): Refusal | undefined {
  const { context, calls } = connector;
  const { exchange, tunnel, channel, headers } = caller;
  const { runtime } = context;
  const callId = mintId("req", runtime) as CallId;
  const commandHeaders = forwardedHeaders(
    exchange.rawHeaders,
    tunnel.access === "passthrough",
    exchange.requestId,
  );
  const pinnedTo = unsealSession(context, caller, commandHeaders);
  if (typeof pinnedTo === "object") {
    context.bodies.release(call.reservedBytes);
    return pinnedTo;
  }
  const startedAtMs = runtime.monotonicMs();
  const held: HeldCall = {
    callId,
    tunnel: tunnel.id,
    channel,
    kind: call.kind,
    command: encodeCommand({
      requestId: callId,
      shardToken: context.commandTokens.seal(tunnel.id, callId),
      commandType: call.commandType,
      channel,
      createdAtMs: runtime.wallMs(),
      headers: commandHeaders,
      payload: call.payload,
    }),
    pinnedTo,
    answer: new CallerAnswer({
      exchange,
      accepts: call.accepts,
      rpcId: call.rpcId,
      headers,
      runtime,
    }),
    startedAtMs,
    deadlineAtMs: startedAtMs + tunnel.deadlineMs,
    reservedBytes: call.reservedBytes,
    progress: { kind: "parked" },
    submittedBy: 0,
    deadlineTimer: undefined,
  };
  exchange.onGone(() => calls.abandon(held));
  if (context.logger.isDebug) {
    context.logger.debug("call-submitted", { callId, tunnel: tunnel.id, requestId: exchange.requestId });
  }
  calls.start(held, tunnel.placement);
  if (exchange.isGone) calls.abandon(held);
  return undefined;
}

/**
 * Replaces a sealed session id by the target's own and says which instance holds the session. One of ours that does not
 * open is refused: its session lives in one process, and nobody knows which. Spec T8.
 */
function unsealSession(
  context: EntryContext,
  caller: AdmittedCaller,
  headers: CommandHeaders,
): InstanceId | Refusal | undefined {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === HEADER.mcpSessionId.toLowerCase());
  const sessionId = name === undefined ? undefined : headers[name]?.[0];
  if (name === undefined || sessionId === undefined) return undefined;
  const opened = openSessionId(context.sessionTokens, caller.tunnel.id, caller.channel, sessionId);
  if (opened.kind === "targets-own") return undefined;
  if (opened.kind === "broken") return refuse("session_not_found");
  const { instance, targetSessionId } = opened.session;
  if (targetSessionId === undefined) delete headers[name];
  else headers[name] = [targetSessionId];
  return instance;
}
