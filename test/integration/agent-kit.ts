// What the agent's integration tests share: commands as a service writes them, and an agent that is stopped at the end.

import { createAgent, type Agent, type AgentOptions, type AgentPorts } from "@moor/client";
import { createNodeRuntime, createSilentLogger, Secret } from "@moor/runtime";
import {
  startScriptedService,
  type ScriptedAnswer,
  type ScriptedHandler,
  type ScriptedService,
} from "@moor/testkit";
import { onTestFinished } from "vitest";

export const TUNNEL = "tunnel_0123456789abcdef0123456789abcdef";
export const KEY = "moor_agent_planted-key-marker";

/** A running agent against `endpoint`; stopped without grace when the test ends. */
export function startAgent(
  options: Partial<AgentOptions> & Pick<AgentOptions, "endpoint">,
  ports: Partial<AgentPorts> = {},
): Agent {
  const agent = createAgent(
    { tunnel: TUNNEL, key: new Secret(KEY), channels: [{ mcpUrl: "http://127.0.0.1:9/mcp" }], ...options },
    { runtime: createNodeRuntime(), logger: createSilentLogger(), ...ports },
  );
  agent.start();
  onTestFinished(() => agent.stop(0));
  return agent;
}

export interface WrittenCommand {
  readonly id: string;
  readonly token?: string;
  readonly type?: string;
  readonly channel?: string;
  readonly timeout?: string;
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  /** Raw JSON text of the caller's message. */
  readonly jsonrpc?: string;
}

/** One command as a service writes it. */
export function command(fields: WrittenCommand): string {
  const {
    id,
    token = `token-of-${id}`,
    type = "jsonrpc",
    channel,
    timeout = "30s",
    headers = {},
    jsonrpc,
  } = fields;
  const head = JSON.stringify({
    command_type: type,
    request_id: id,
    shard_token: token,
    channel,
    created_at: "2026-01-01T00:00:00Z",
    response_timeout: timeout,
    headers,
  });
  return jsonrpc === undefined ? head : `${head.slice(0, -1)},"jsonrpc":${jsonrpc}}`;
}

/** A call of the tool `echo` with the JSON-RPC id `id` (raw JSON text). */
export function toolCall(id: string, rawArguments = "{}"): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":${rawArguments}}}`;
}

/** A poll answer that hands these commands out. */
export function commands(...texts: readonly string[]): ScriptedAnswer {
  return {
    kind: "answer",
    status: 200,
    headers: [["Content-Type", "application/json"]],
    body: `{"commands":[${texts.join(",")}]}`,
  };
}

/** Answers each poll with the next of `polls`, then lets them hang; accepts responses. */
export function playPolls(polls: readonly ScriptedAnswer[]): (path: string) => ScriptedAnswer {
  let next = 0;
  return (path) => {
    if (!path.endsWith("/poll")) return { kind: "answer", status: 200, body: '{"status":"ok"}' };
    const answer = polls[next];
    next += 1;
    return answer ?? { kind: "hang" };
  };
}

/** A response's body as the service reads it. */
export interface PostedResponse {
  readonly request_id: string;
  readonly channel?: string;
  readonly resp_type?: string;
  readonly resp_code?: number;
  readonly resp_headers?: Readonly<Record<string, readonly string[]>>;
  readonly resp_json?: {
    readonly id?: unknown;
    readonly method?: string;
    readonly result?: unknown;
    readonly params?: unknown;
    readonly error?: {
      readonly code: number;
      readonly data?: { readonly tunnel_failure?: Record<string, unknown> };
    };
  };
}

export function posted(body: Buffer): PostedResponse {
  return JSON.parse(body.toString("utf8")) as PostedResponse;
}

/** A scripted service that hands out these answers to polls and accepts every response; closed with the test. */
export async function startServiceWith(...polls: readonly ScriptedAnswer[]): Promise<ScriptedService> {
  const play = playPolls(polls);
  const service = await startScriptedService(({ path }) => play(path));
  onTestFinished(() => service.close());
  return service;
}

/** A scripted MCP server; closed with the test. */
export async function startTargetWith(
  handler: ScriptedHandler,
): Promise<{ url: string; service: ScriptedService }> {
  const service = await startScriptedService(handler);
  onTestFinished(() => service.close());
  return { url: `${service.origin}/mcp`, service };
}

/** What the agent posts for one call with the id 1 to a target that answers so. */
export async function responsesTo(
  handler: ScriptedHandler,
  fields: Partial<WrittenCommand> = {},
): Promise<{ responses: PostedResponse[]; bodies: Buffer[]; target: ScriptedService }> {
  const target = await startTargetWith(handler);
  const service = await startServiceWith(commands(command({ id: "r1", jsonrpc: toolCall("1"), ...fields })));
  startAgent({ endpoint: service.origin, channels: [{ mcpUrl: target.url }] });
  const isFinal = (body: Buffer) => posted(body).resp_type !== "jsonrpc_notify";
  await service.untilSeen("a final", () => service.responses.some(({ body }) => isFinal(body)));
  const bodies = service.responses.map(({ body }) => body);
  return { responses: bodies.map(posted), bodies, target: target.service };
}

/** An event-stream answer of these raw JSON messages; `end` closes it, otherwise it stays open. */
export function eventStream(messages: readonly string[], end = true): ScriptedAnswer {
  const text = messages.map((message) => `event: message\ndata: ${message}\n\n`).join("");
  const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s1\r\n";
  return end
    ? {
        kind: "raw",
        bytes: `${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
        keepOpen: true,
      }
    : {
        kind: "hang",
        bytes: `${head}Transfer-Encoding: chunked\r\n\r\n${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`,
      };
}
