// A raw MCP server that writes down every call it executes, and answers with bytes that no serialiser has touched:
// the judge of "executed once, answered once, byte for byte".
//
// Spec: T5, T6, T9, T15.
// I1  An entry is in the ledger before the first byte of its answer leaves.
// I2  The id of a request comes back as the caller wrote it (raw slice), so that a big integer id survives.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { JSON_DEPTH_MAX, scanJson, type ScannedMember } from "@moor/protocol";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { startHttpHost } from "./http-host.ts";

/** One executed message. */
export interface LedgerEntry {
  readonly httpMethod: string;
  /** JSON-RPC method; empty for a response, and for a request without a body. */
  readonly method: string;
  /** Raw text of the JSON-RPC id; undefined for a notification. */
  readonly rawId: string | undefined;
  /** `params.arguments.call`, by which tests name their calls. */
  readonly call: string | undefined;
  /** The body as it arrived. */
  readonly body: Buffer;
  readonly headers: IncomingHttpHeaders;
}

/** How the server answers one entry. */
export type LedgerAnswer =
  /** The raw JSON text of `result`, in a JSON answer. */
  | { readonly kind: "result"; readonly rawResult: string | Buffer; readonly delayMs?: number }
  /** An SSE answer: each of these raw JSON messages, then the result, each after `gapMs` (default: all at once). */
  | {
      readonly kind: "stream";
      readonly rawMessages: readonly string[];
      readonly rawResult: string;
      readonly gapMs?: number;
    }
  /** Anything at all. */
  | {
      readonly kind: "raw";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Buffer;
    }
  /** Never answers; the connection stays open. */
  | { readonly kind: "hang" }
  /** Destroys the connection. */
  | { readonly kind: "reset" };

export interface LedgerServer {
  readonly url: string;
  readonly port: number;
  /** Everything executed so far, in order. */
  readonly entries: readonly LedgerEntry[];
  /** How often the call named `call` was executed. */
  executions(call: string): number;
  /** Sets how later entries are answered; undefined falls back to the default answer. */
  answerWith(answer: (entry: LedgerEntry) => LedgerAnswer | undefined): void;
  close(): Promise<void>;
}

const runtime = createNodeRuntime();

/** Starts a ledger server on a free loopback port (or on `port`). */
export async function startLedgerServer(options: { readonly port?: number } = {}): Promise<LedgerServer> {
  const entries: LedgerEntry[] = [];
  let script: (entry: LedgerEntry) => LedgerAnswer | undefined = () => undefined;
  const host = await startHttpHost((request, response) => {
    void (async () => {
      const entry = readEntry(request, await readBody(request));
      entries.push(entry);
      await writeAnswer(response, entry, script(entry) ?? defaultAnswer(entry));
    })().catch(() => response.destroy());
  }, options.port);
  return {
    url: `${host.origin}/mcp`,
    port: host.port,
    entries,
    executions: (call) => entries.filter((entry) => entry.call === call).length,
    answerWith: (answer) => {
      script = answer;
    },
    close: () => host.close(),
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function readEntry(request: IncomingMessage, body: Buffer): LedgerEntry {
  const scanned = scanJson(body, { depthMax: JSON_DEPTH_MAX });
  const members: readonly ScannedMember[] = scanned.ok ? scanned.members : [];
  const raw = (key: string) => {
    const member = members.find((candidate) => candidate.key === key);
    return member === undefined ? undefined : body.toString("utf8", member.value.start, member.value.end);
  };
  return {
    httpMethod: request.method ?? "",
    method: JSON.parse(raw("method") ?? '""') as string,
    rawId: raw("id"),
    call: callName(raw("params")),
    body,
    headers: request.headers,
  };
}

function callName(rawParams: string | undefined): string | undefined {
  if (rawParams === undefined) return undefined;
  const params = JSON.parse(rawParams) as { arguments?: { call?: unknown } } | null;
  const call = params?.arguments?.call;
  return typeof call === "string" ? call : undefined;
}

/** What a plain MCP server would say: enough for any client to connect, list one tool and call it. */
function defaultAnswer(entry: LedgerEntry): LedgerAnswer {
  if (entry.httpMethod === "GET") return { kind: "raw", status: 405 };
  if (entry.httpMethod === "DELETE") return { kind: "raw", status: 200 };
  if (entry.rawId === undefined || entry.method === "") return { kind: "raw", status: 202 };
  switch (entry.method) {
    case "initialize":
      return {
        kind: "result",
        rawResult: JSON.stringify({
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "ledger", version: "1.0.0" },
        }),
      };
    case "tools/list":
      return {
        kind: "result",
        rawResult: JSON.stringify({ tools: [{ name: "record", inputSchema: { type: "object" } }] }),
      };
    case "tools/call": {
      const content = [{ type: "text", text: entry.call ?? "" }];
      return { kind: "result", rawResult: JSON.stringify({ content }) };
    }
    default:
      return { kind: "result", rawResult: "{}" };
  }
}

async function writeAnswer(
  response: ServerResponse,
  entry: LedgerEntry,
  answer: LedgerAnswer,
): Promise<void> {
  switch (answer.kind) {
    case "result":
      if (answer.delayMs !== undefined) await sleep(runtime, answer.delayMs);
      response.writeHead(200, { "Content-Type": "application/json" }).end(finalOf(entry, answer.rawResult));
      return;
    case "stream":
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      for (const message of answer.rawMessages) {
        if (answer.gapMs !== undefined) await sleep(runtime, answer.gapMs);
        response.write(`data: ${message}\n\n`);
      }
      if (answer.gapMs !== undefined) await sleep(runtime, answer.gapMs);
      response.end(`data: ${finalOf(entry, answer.rawResult).toString("utf8")}\n\n`);
      return;
    case "raw":
      response.writeHead(answer.status, answer.headers).end(answer.body);
      return;
    case "hang":
      return;
    case "reset":
      response.destroy();
  }
}

function finalOf(entry: LedgerEntry, rawResult: string | Buffer): Buffer {
  const head = `{"jsonrpc":"2.0","id":${entry.rawId ?? "null"},"result":`;
  return Buffer.concat([Buffer.from(head), Buffer.from(rawResult as string), Buffer.from("}")]);
}
