// An agent as small as the wire allows, and as old ones are: it polls, asks its MCP server, posts what that says. It
// declares no capability and knows no polling tokens, unless a test writes such headers itself.
//
// Spec: R24, T4–T8, T16.
// I1  It never follows a correction: one that reaches it is counted and is an error like any other.
// I2  A final is posted again, with the same bytes, when no answer came or one that says it was not taken (5xx, 429).

import { randomBytes } from "node:crypto";
import { HEADER } from "@moor/protocol";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { Agent } from "undici";

export interface PlainAgentOptions {
  readonly endpoint: string;
  readonly tunnel: { readonly id: string; readonly agentKey: string };
  /** URL of its MCP server. */
  readonly mcp: string;
  /** Headers for its MCP server. */
  readonly mcpHeaders?: Readonly<Record<string, string>>;
  /** Further headers of every control-plane request, e.g. X-Tunnel-MCP-Server-Info. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PlainAgent {
  readonly instanceId: string;
  /** Commands taken so far. */
  readonly commandCount: number;
  /** Polls that were answered with 409. */
  readonly correctionCount: number;
  /** Polls that ended in anything but 200 and 204. */
  readonly failedPollCount: number;
  /** Resolves with the first poll that was answered with 200 or 204. */
  readonly connected: Promise<void>;
  /** Stops polling, and resolves when the commands under way are answered. */
  stop(): Promise<void>;
}

interface Command {
  readonly request_id: string;
  readonly shard_token: string;
  readonly channel: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly jsonrpc?: unknown;
}

const runtime = createNodeRuntime();

/** Wait a poll asks for. Milliseconds. */
const POLL_WAIT_MS = 20_000;
/** Pause after a failed poll or post. Milliseconds. */
const RETRY_MS = 200;
const POST_ATTEMPTS = 3;

/** Starts polling. */
export function startPlainAgent(options: PlainAgentOptions): PlainAgent {
  const agent = new RunningPlainAgent(options);
  agent.start();
  return agent;
}

class RunningPlainAgent implements PlainAgent {
  readonly instanceId = randomBytes(16).toString("hex");
  readonly connected: Promise<void>;
  commandCount = 0;
  correctionCount = 0;
  failedPollCount = 0;
  readonly #options: PlainAgentOptions;
  readonly #http = new Agent({ headersTimeout: 60_000, bodyTimeout: 60_000 });
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #loop: Promise<void> = Promise.resolve();
  #noteConnected: () => void = () => {};

  constructor(options: PlainAgentOptions) {
    this.#options = options;
    this.connected = new Promise((resolve) => {
      this.#noteConnected = resolve;
    });
  }

  start(): void {
    this.#loop = this.#poll();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await Promise.all(this.#running);
    await this.#http.destroy();
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopping;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const commands = await this.#pollOnce(isFirst ? 1 : POLL_WAIT_MS).catch(() => undefined);
      if (commands === undefined) {
        if (!signal.aborted) this.failedPollCount += 1;
        await sleep(runtime, RETRY_MS, signal);
        continue;
      }
      this.#noteConnected();
      for (const command of commands) this.#run(command);
    }
  }

  async #pollOnce(waitMs: number): Promise<readonly Command[] | undefined> {
    const answer = await this.#http.request({
      origin: this.#options.endpoint,
      path: `/v1/tunnels/${this.#options.tunnel.id}/poll?limit=10&timeout_ms=${waitMs}`,
      method: "GET",
      headers: this.#headers(),
      signal: this.#stopping.signal,
    });
    const body = await answer.body.text();
    if (answer.statusCode === 409) this.correctionCount += 1;
    if (answer.statusCode === 204) return [];
    return answer.statusCode === 200
      ? (JSON.parse(body) as { readonly commands: readonly Command[] }).commands
      : undefined;
  }

  #headers(): Record<string, string> {
    return {
      authorization: `Bearer ${this.#options.tunnel.agentKey}`,
      accept: "application/json",
      "user-agent": "plain-agent/1",
      [HEADER.clientName]: "plain-agent",
      [HEADER.clientVersion]: "1",
      [HEADER.instanceId]: this.instanceId,
      ...this.#options.headers,
    };
  }

  #run(command: Command): void {
    this.commandCount += 1;
    const ended: Promise<void> = this.#serve(command)
      .catch(() => {}) // The service's own deadline ends the call: agents drop silently (T7).
      .finally(() => this.#running.delete(ended));
    this.#running.add(ended);
  }

  async #serve(command: Command): Promise<void> {
    const answer = await this.#http.request({
      origin: new URL(this.#options.mcp).origin,
      path: new URL(this.#options.mcp).pathname,
      method: command.jsonrpc === undefined ? "DELETE" : "POST",
      headers: {
        ...this.#options.mcpHeaders,
        ...Object.fromEntries(Object.entries(command.headers).map(([name, values]) => [name, [...values]])),
        "content-type": "application/json",
      },
      body: command.jsonrpc === undefined ? null : JSON.stringify(command.jsonrpc),
    });
    const headers = answer.headers;
    if (!String(headers["content-type"] ?? "").startsWith("text/event-stream")) {
      const text = await answer.body.text();
      await this.#post(command, text === "" ? undefined : JSON.parse(text), {
        resp_code: answer.statusCode,
        resp_headers: sessionHeaderOf(headers),
        ...(command.jsonrpc === undefined ? { resp_type: "session_termination_response" } : {}),
        ...(isNotification(command.jsonrpc) ? { resp_type: "notify_ack" } : {}),
      });
      return;
    }
    for await (const message of messagesOf(answer.body)) {
      const isFinal = typeof message === "object" && message !== null && "id" in message;
      await this.#post(command, message, isFinal ? {} : { resp_type: "jsonrpc_notify" });
    }
  }

  async #post(command: Command, message: unknown, fields: Readonly<Record<string, unknown>>): Promise<void> {
    const { request_id, channel } = command;
    const body = JSON.stringify({ request_id, channel, resp_json: message, ...fields });
    const attempts = fields["resp_type"] === "jsonrpc_notify" ? 1 : POST_ATTEMPTS;
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const status = await this.#postOnce(command, body).catch(() => undefined);
      if (status !== undefined && status < 500 && status !== 429) return;
      await sleep(runtime, RETRY_MS);
    }
  }

  async #postOnce(command: Command, body: string): Promise<number> {
    const answer = await this.#http.request({
      origin: this.#options.endpoint,
      path: `/v1/tunnels/${this.#options.tunnel.id}/response`,
      method: "POST",
      headers: {
        ...this.#headers(),
        "content-type": "application/json",
        [HEADER.shardToken]: command.shard_token,
      },
      body,
    });
    await answer.body.dump();
    return answer.statusCode;
  }
}

/** JSON messages of an event stream, each as soon as it is complete. */
async function* messagesOf(body: AsyncIterable<Buffer>): AsyncGenerator {
  let text = "";
  for await (const chunk of body) {
    text += chunk.toString("utf8");
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data !== undefined) yield JSON.parse(data.slice("data: ".length));
    }
  }
}

function isNotification(message: unknown): boolean {
  return typeof message === "object" && message !== null && !("id" in message);
}

function sessionHeaderOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string[]> {
  const id = headers["mcp-session-id"];
  return {
    "Content-Type": ["application/json"],
    ...(typeof id === "string" ? { "Mcp-Session-Id": [id] } : {}),
  };
}
