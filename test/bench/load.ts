// The bench's caller: `concurrency` callers, each with a connection of its own, each sending its next call when it has
// its answer; prints what closed-loop.ts does.
// Arguments: URL, concurrency, warm-up ms, measured ms. The bearer key, if any, is in $BENCH_KEY.

import { Pool } from "undici";
import { runClosedLoop } from "./closed-loop.ts";

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

async function callOnce(): Promise<boolean> {
  nextId += 1;
  const id = nextId;
  const params = '{"name":"add","arguments":{"a":2,"b":3}}';
  const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
  const answer = await pool.request({ path: pathname, method: "POST", headers, body });
  const text = await answer.body.text();
  return answer.statusCode === 200 && text.startsWith(`{"jsonrpc":"2.0","id":${id},"result"`);
}

const callers = Array.from({ length: Number(concurrency) }, (_, at) => at);
await runClosedLoop(callers, callOnce, Number(warmUpMs), Number(measuredMs));
await pool.close();
