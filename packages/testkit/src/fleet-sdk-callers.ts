// A few callers that are official MCP clients: they call one after the other, with progress, and never retry.
//
// Not exported by the package root: the SDK is slow to load, and most tests need none.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createNodeRuntime, sleep } from "@moor/runtime";
import type { CallEnding, CallRecord } from "./fleet-call.ts";
import type { CalledTunnel, Callers } from "./fleet-callers.ts";

export interface SdkCallersOptions {
  readonly endpoints: readonly string[];
  readonly tunnels: readonly CalledTunnel[];
  /** Number of clients; each has a tunnel of its own if there are enough. */
  readonly clients: number;
  /** Start of every call's name; unique among the runs of a ledger. */
  readonly prefix: string;
}

const runtime = createNodeRuntime();

/** Pause between an answer and the client's next call. Milliseconds: a few calls a second each. */
const PAUSE_MS = 200;

/** Connects the clients and starts their calls; rejects when a client cannot connect. */
export async function startSdkCallers(options: SdkCallersOptions): Promise<Callers> {
  const { endpoints, tunnels, prefix } = options;
  const stop = new AbortController();
  const records: CallRecord[] = [];
  let sentCount = 0;
  const connections = await Promise.all(
    Array.from({ length: options.clients }, async (_, at) => {
      const tunnel = tunnels[at % tunnels.length] as CalledTunnel;
      return { tunnel, client: await connect(endpoints[at % endpoints.length] ?? "", tunnel) };
    }),
  );
  const loops = connections.map(async ({ tunnel, client }) => {
    while (!stop.signal.aborted) {
      const name = `${prefix}-${sentCount}`;
      sentCount += 1;
      const startMs = runtime.monotonicMs();
      const ending = await callOnce(client, name);
      records.push({
        name,
        tunnel: tunnel.id,
        form: "sdk",
        latencyMs: runtime.monotonicMs() - startMs,
        ending,
      });
      await sleep(runtime, PAUSE_MS, stop.signal);
    }
    await client.close();
  });
  return {
    get sentCount() {
      return sentCount;
    },
    get endedCount() {
      return records.length;
    },
    finish: async () => {
      stop.abort();
      await Promise.all(loops);
      return records;
    },
  };
}

async function connect(endpoint: string, tunnel: CalledTunnel): Promise<Client> {
  const client = new Client({ name: "fleet", version: "1.0.0" });
  const headers = { Authorization: `Bearer ${tunnel.connectorKey ?? ""}` };
  const url = new URL(`${endpoint}/v1/mcp/${tunnel.id}`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

async function callOnce(client: Client, name: string): Promise<CallEnding> {
  const progress: number[] = [];
  try {
    const result = await client.callTool(
      { name: "record", arguments: { call: name } },
      { onprogress: (report) => progress.push(report.progress) },
    );
    const [first] = result.content;
    if (first?.type !== "text" || first.text !== name) return { kind: "foreign" };
    return { kind: "answered", progress };
  } catch (error) {
    return { kind: "broken", fault: `the SDK threw ${error instanceof Error ? error.message : "something"}` };
  }
}
