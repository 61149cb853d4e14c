// The bench's apps: each with a link of its own to a home of its own, each sending its next command when it has the result
// of the one before; prints what closed-loop.ts does.
// Arguments: endpoint, warm-up ms, measured ms. Tokens, one for each app, and service keys are in $BENCH_TOKENS and
// $BENCH_KEYS, with commas between.

import { createAppLink, type AppLink } from "@moor/client";
import { Secret } from "@moor/runtime";
import { within } from "@moor/testkit/within";
import { runClosedLoop } from "./closed-loop.ts";

const [endpoint = "", warmUpMs = "1000", measuredMs = "1000"] = process.argv.slice(2);
const { BENCH_TOKENS: tokens = "", BENCH_KEYS: keys = "" } = process.env;
const TTL_MS = 30_000;

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

async function command(app: AppLink): Promise<boolean> {
  const { kind } = await app.send({ ttlMs: TTL_MS, data: { heat: 21 } });
  return kind === "result";
}

const apps = await Promise.all(tokens.split(",").map(startApp));
await runClosedLoop(apps, command, Number(warmUpMs), Number(measuredMs));
await Promise.all(apps.map((app) => app.stop()));
