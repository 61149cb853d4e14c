// The bench's apps: each with a link of its own to a home of its own, each sending its next command when it has the result
// of the one before. Prints "measuring" after the warm-up, then one line of JSON (LoadResult).
// Arguments: endpoint, warm-up ms, measured ms. Tokens, one for each app, and service keys are in $BENCH_TOKENS and
// $BENCH_KEYS, with commas between.

import { createAppLink, type AppLink } from "@moor/client";
import { Secret } from "@moor/runtime";
import { within } from "@moor/testkit/within";
import type { LoadResult } from "./load.ts";

const [endpoint = "", warmUpMs = "1000", measuredMs = "1000"] = process.argv.slice(2);
const { BENCH_TOKENS: tokens = "", BENCH_KEYS: keys = "" } = process.env;
const TTL_MS = 30_000;

let latenciesMs: number[] = [];
let errors = 0;

async function startApp(token: string): Promise<AppLink> {
  const online = Promise.withResolvers<void>();
  const app = createAppLink(
    { endpoint, token: new Secret(token), app: "bench", serviceKeys: keys.split(",") },
    {
      onState: ({ kind }) => {
        if (kind === "online") online.resolve();
      },
    },
  );
  app.start();
  await within(online.promise, "an app to be online");
  return app;
}

async function commandOnce(app: AppLink): Promise<void> {
  const startMs = performance.now();
  const { kind } = await app.send({ ttlMs: TTL_MS, data: { heat: 21 } });
  latenciesMs.push(performance.now() - startMs);
  if (kind !== "result") errors += 1;
}

async function commandUntil(endMs: number): Promise<void> {
  const sender = async (app: AppLink) => {
    while (performance.now() < endMs) await commandOnce(app);
  };
  await Promise.all(apps.map(sender));
}

const apps = await Promise.all(tokens.split(",").map(startApp));

await commandUntil(performance.now() + Number(warmUpMs));
latenciesMs = [];
errors = 0;
console.log("measuring");
const startMs = performance.now();
await commandUntil(startMs + Number(measuredMs));
const elapsedMs = performance.now() - startMs;
latenciesMs.sort((a, b) => a - b);
const at = (share: number) => latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? 0;
const result: LoadResult = { calls: latenciesMs.length, errors, elapsedMs, p50Ms: at(0.5), p99Ms: at(0.99) };
console.log(JSON.stringify(result));
await Promise.all(apps.map((app) => app.stop()));
