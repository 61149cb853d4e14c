// A fleet's callers: calls leave at a steady rate whether or not earlier ones were answered (an open loop), and no call
// is ever sent twice.
//
// Spec: T9, T11.
// I1  One call is one HTTP request: neither this code nor the client under it repeats one.
// I2  Calls that could not leave in time leave late, not less: the number of calls depends on the clock alone.

import { createNodeRuntime, sleep } from "@moor/runtime";
import { Agent } from "undici";
import { encodeCall, readAnswer, type CallEnding, type CallForm, type CallRecord } from "./fleet-call.ts";

/** Where the calls of one tunnel go. */
export interface CalledTunnel {
  readonly id: string;
  /** Null unless access is `key`. */
  readonly connectorKey: string | null;
}

/** A running load. */
export interface Callers {
  /** Calls sent so far. */
  readonly sentCount: number;
  /** Calls that have ended so far. */
  readonly endedCount: number;
  /** Sends no more, and resolves with every call once all have ended. */
  finish(): Promise<readonly CallRecord[]>;
}

export interface CallersOptions {
  /** Entries the calls are spread over, round robin: `http://127.0.0.1:40001`. */
  readonly endpoints: readonly string[];
  readonly tunnels: readonly CalledTunnel[];
  /** Calls a second over all tunnels. */
  readonly callsPerS: number;
  /** Start of every call's name; unique among the runs of a ledger. */
  readonly prefix: string;
}

const runtime = createNodeRuntime();

/** How often due calls are sent. Milliseconds. */
const TICK_MS = 5;
/** A caller's own patience. Milliseconds: above the 55 s of a command, so that only a lost call meets it. */
const CALLER_PATIENCE_MS = 90_000;

/** Starts calling; every second call asks for an event stream with progress. */
export function startCallers(options: CallersOptions): Callers {
  const { endpoints, tunnels, callsPerS, prefix } = options;
  const agent = new Agent({ headersTimeout: CALLER_PATIENCE_MS, bodyTimeout: CALLER_PATIENCE_MS });
  const stop = new AbortController();
  const records: CallRecord[] = [];
  const open = new Set<Promise<void>>();
  let sentCount = 0;

  const sendOne = () => {
    const at = sentCount;
    sentCount += 1;
    const tunnel = tunnels[at % tunnels.length];
    // A step of its own, lest each tunnel always meet the same entry and form.
    const turn = Math.floor(at / tunnels.length) + at;
    const endpoint = endpoints[turn % endpoints.length];
    if (tunnel === undefined || endpoint === undefined) return;
    const form: CallForm = Math.floor(turn / endpoints.length) % 2 === 0 ? "json" : "stream";
    const call = sendCall({ agent, endpoint, tunnel, form, name: `${prefix}-${at}` });
    const ended: Promise<void> = call.then((record) => {
      records.push(record);
      open.delete(ended);
    });
    open.add(ended);
  };
  const loop = (async () => {
    const startMs = runtime.monotonicMs();
    while ((await sleep(runtime, TICK_MS, stop.signal)) === "elapsed") {
      const due = Math.ceil(((runtime.monotonicMs() - startMs) * callsPerS) / 1000);
      for (let left = due - sentCount; left > 0; left -= 1) sendOne();
    }
  })();

  return {
    get sentCount() {
      return sentCount;
    },
    get endedCount() {
      return records.length;
    },
    finish: async () => {
      stop.abort();
      await loop;
      await Promise.all(open);
      await agent.close();
      return records;
    },
  };
}

/** One call to one entry. */
export interface OneCall {
  readonly agent: Agent;
  readonly endpoint: string;
  readonly tunnel: CalledTunnel;
  readonly form: CallForm;
  readonly name: string;
}

/** Sends one call and reads its answer to the end. Never rejects. */
export async function sendCall({ agent, endpoint, tunnel, form, name }: OneCall): Promise<CallRecord> {
  const startMs = runtime.monotonicMs();
  const ending = await exchange({ agent, endpoint, tunnel, form, name }).catch(
    (error: unknown): CallEnding => {
      return { kind: "broken", fault: faultOf(error) };
    },
  );
  return { name, tunnel: tunnel.id, form, latencyMs: runtime.monotonicMs() - startMs, ending };
}

async function exchange({ agent, endpoint, tunnel, form, name }: OneCall): Promise<CallEnding> {
  const key = tunnel.connectorKey;
  const answer = await agent.request({
    origin: endpoint,
    path: `/v1/mcp/${tunnel.id}`,
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: form === "json" ? "application/json" : "application/json, text/event-stream",
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    },
    body: encodeCall(name, form),
  });
  const contentType = answer.headers["content-type"];
  const body = await answer.body.text();
  return readAnswer(name, answer.statusCode, String(contentType ?? ""), body);
}

/** A category and nothing that a URL or key could be in. */
function faultOf(error: unknown): string {
  if (error instanceof Error && "code" in error) return String(error.code);
  return error instanceof Error ? error.name : "unknown fault";
}
