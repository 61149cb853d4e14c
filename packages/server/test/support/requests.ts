// The requests that callers and agents send, as tests write them, and what comes back.

import type { HomeRecord, TunnelRecord } from "../../src/directory/directory.ts";
import type { FakeExchange, FakeRequest } from "./fake-exchange.ts";

/** A command as an agent reads it from a poll. */
export interface ReceivedCommand {
  readonly request_id: string;
  readonly shard_token: string;
  readonly command_type: string;
  readonly channel: string;
  readonly created_at: string;
  readonly response_timeout: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly jsonrpc?: unknown;
}

/** How a call differs from a plain tools/list. */
export interface CallOptions {
  readonly body?: string | Uint8Array;
  readonly headers?: readonly string[];
  readonly channel?: string;
  readonly method?: string;
  readonly accept?: string | null;
  readonly isLoopbackListener?: boolean;
}

export interface PollOptions {
  readonly query?: string;
  readonly instance?: string;
  readonly headers?: readonly string[];
}

/** Members added to `request_id`, or a whole body. */
export type ResponseFields = Readonly<Record<string, unknown>> | string | Uint8Array;

export interface ResponseOptions {
  readonly instance?: string;
  readonly headers?: readonly string[];
}

export const INSTANCE_A = "a".repeat(32);
export const INSTANCE_B = "b".repeat(32);

/** A caller's POST to the connector. */
export function callRequest(
  tunnel: Pick<TunnelRecord | HomeRecord, "id">,
  key: string | undefined,
  options: CallOptions = {},
): FakeRequest {
  const accept = options.accept === undefined ? "application/json, text/event-stream" : options.accept;
  return {
    method: options.method ?? "POST",
    path: `/v1/mcp/${tunnel.id}${options.channel === undefined ? "" : `/${options.channel}`}`,
    rawHeaders: [
      ...(key === undefined ? [] : ["Authorization", `Bearer ${key}`]),
      ...(accept === null ? [] : ["Accept", accept]),
      "Content-Type",
      "application/json",
      ...(options.headers ?? []),
    ],
    body: options.body ?? '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    ...(options.isLoopbackListener === undefined ? {} : { isLoopbackListener: options.isLoopbackListener }),
  };
}

/** An agent's poll. */
export function pollRequest(
  tunnel: Pick<TunnelRecord, "id">,
  key: string,
  options: PollOptions = {},
): FakeRequest {
  return {
    path: `/v1/tunnels/${tunnel.id}/poll`,
    query: options.query ?? "",
    rawHeaders: [...agentHeaders(key, options.instance), ...(options.headers ?? [])],
  };
}

/** An agent's response to a command. */
export function responseRequest(
  tunnel: Pick<TunnelRecord, "id">,
  key: string,
  response: ResponseOptions & {
    readonly command: Pick<ReceivedCommand, "request_id" | "shard_token">;
    readonly fields: ResponseFields;
  },
): FakeRequest {
  const { command, fields, instance, headers = [] } = response;
  const isRaw = typeof fields === "string" || fields instanceof Uint8Array;
  return {
    method: "POST",
    path: `/v1/tunnels/${tunnel.id}/response`,
    rawHeaders: [...agentHeaders(key, instance), "X-Tunnel-Shard-Token", command.shard_token, ...headers],
    body: isRaw ? fields : JSON.stringify({ request_id: command.request_id, ...fields }),
  };
}

/** The commands of a poll's 200. */
export function commandsOf(poll: FakeExchange): readonly ReceivedCommand[] {
  return (poll.json as { readonly commands: readonly ReceivedCommand[] }).commands;
}

/** The one command of a poll's 200. */
export function commandOf(poll: FakeExchange): ReceivedCommand {
  const [command] = commandsOf(poll);
  if (command === undefined) throw new Error("the poll carries no command");
  return command;
}

function agentHeaders(key: string, instance = INSTANCE_A): string[] {
  return ["Authorization", `Bearer ${key}`, "X-Tunnel-Client-Instance-Id", instance];
}
