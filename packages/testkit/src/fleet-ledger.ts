// The MCP server behind every tunnel of a fleet: it takes its time, reports progress to who asks, and writes down each
// execution with the tunnel it came through.
//
// Spec: T20. I1  An execution is noted before the first byte of its answer (ledger-server.ts, I1).

import type { Execution } from "./fleet-verdict.ts";
import { startLedgerServer, type LedgerAnswer, type LedgerEntry } from "./ledger-server.ts";

/** Header by which an agent of a fleet says whose it is; agents send it to their MCP server only. */
export const FLEET_TUNNEL_HEADER = "x-fleet-tunnel";

/** How a fleet's server works. */
export interface FleetLedgerOptions {
  /** Notifications sent to a call that brings a progress token. Default 3. */
  readonly progressCount?: number;
  /** Time between two messages of an answer. Milliseconds, default 15. */
  readonly stepMs?: number;
}

export interface FleetLedger {
  readonly url: string;
  readonly progressCount: number;
  /** What was executed so far. */
  executions(): readonly Execution[];
  close(): Promise<void>;
}

/** Starts a fleet's MCP server on a free loopback port. */
export async function startFleetLedger(options: FleetLedgerOptions = {}): Promise<FleetLedger> {
  const { progressCount = 3, stepMs = 15 } = options;
  const executions: Execution[] = [];
  const ledger = await startLedgerServer();
  ledger.answerWith((entry) => {
    if (entry.method !== "tools/call" || entry.call === undefined) return undefined;
    executions.push({ call: entry.call, tunnel: String(entry.headers[FLEET_TUNNEL_HEADER] ?? "") });
    return answerOf(entry, progressCount, stepMs);
  });
  return { url: ledger.url, progressCount, executions: () => executions, close: () => ledger.close() };
}

function answerOf(entry: LedgerEntry, progressCount: number, stepMs: number): LedgerAnswer {
  const rawResult = JSON.stringify({ content: [{ type: "text", text: entry.call }] });
  const progressToken = progressTokenOf(entry);
  if (progressToken === undefined) return { kind: "result", rawResult, delayMs: stepMs };
  const rawMessages = Array.from({ length: progressCount }, (_, step) => {
    const params = { progressToken, progress: step + 1, total: progressCount };
    return JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params });
  });
  return { kind: "stream", rawMessages, rawResult, gapMs: stepMs };
}

function progressTokenOf({ body }: LedgerEntry): unknown {
  const { params } = JSON.parse(body.toString("utf8")) as {
    readonly params?: { readonly _meta?: { readonly progressToken?: unknown } };
  };
  return params?._meta?.progressToken;
}
