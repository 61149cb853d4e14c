// The bench's caller: `concurrency` callers, each with a connection of its own, each sending its next call when it has
// its answer. Prints "measuring" after the warm-up, then one line of JSON (LoadResult).
// Arguments: URL, concurrency, warm-up ms, measured ms. The bearer key, if any, is in $BENCH_KEY.

import { Pool } from "undici";

export interface LoadResult {
  readonly calls: number;
  /** Answers that were not the result of their own call. */
  readonly errors: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const [url = "", concurrency = "1", warmUpMs = "1000", measuredMs = "1000"] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const pool = new Pool(origin, { connections: Number(concurrency), pipelining: 1 });
const key = process.env.BENCH_KEY;
const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
};

let nextId = 0;
let latenciesMs: number[] = [];
let errors = 0;

async function callOnce(): Promise<void> {
  nextId += 1;
  const id = nextId;
  const params = '{"name":"add","arguments":{"a":2,"b":3}}';
  const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
  const startMs = performance.now();
  const answer = await pool.request({ path: pathname, method: "POST", headers, body });
  const text = await answer.body.text();
  latenciesMs.push(performance.now() - startMs);
  if (answer.statusCode !== 200 || !text.startsWith(`{"jsonrpc":"2.0","id":${id},"result"`)) errors += 1;
}

async function callUntil(endMs: number): Promise<void> {
  const caller = async () => {
    while (performance.now() < endMs) {
      await callOnce().catch(() => {
        errors += 1;
      });
    }
  };
  await Promise.all(Array.from({ length: Number(concurrency) }, caller));
}

await callUntil(performance.now() + Number(warmUpMs));
latenciesMs = [];
errors = 0;
console.log("measuring");
const startMs = performance.now();
await callUntil(startMs + Number(measuredMs));
const elapsedMs = performance.now() - startMs;
latenciesMs.sort((a, b) => a - b);
const at = (share: number) => latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? 0;
const result: LoadResult = {
  calls: latenciesMs.length,
  errors,
  elapsedMs,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
};
console.log(JSON.stringify(result));
await pool.close();
