// `moor drain SHARD --restart`: tells the node that runs a shard to leave without a storm, and watches it come back.
//
// Spec: L24; design "Drains and restarts".
// I1  A signal ends the watching, never the restart.

import { type Command, Option } from "commander";
import { SPREAD_MS_MAX, SPREAD_MS_MIN } from "@moor/protocol";
import { ConfigError, createNodeRuntime } from "@moor/runtime";
import type { DrainForecast } from "@moor/server/drains";
import { forecastAnswer, forecastFields, forecastText, reportAnswer, reportText } from "../drain-output.ts";
import { watchRestart, type Restart } from "../drain-watch.ts";
import { RefusedError } from "../exit-code.ts";
import { FleetClient } from "../fleet-client.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { integerOption, shardIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage } from "../output.ts";
import { stderrProgress } from "../progress-line.ts";

interface DrainOptions extends OperatorOptions {
  readonly restart?: boolean;
  readonly moveAway?: boolean;
  readonly spreadMs?: number;
  readonly reason?: string;
  readonly detach?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  # what a restart would look like
  moor drain s1 --restart --dry-run
  # restart the node that runs s1, and see who came back
  moor drain s1 --restart --reason "new version"
`;

/** Adds `drain` to the program. */
export function registerDrainCommand(program: Command): void {
  const drain = program
    .command("drain")
    .description("restart the node that runs a shard, its clients coming back spread over time")
    .argument("<shard>", "shard", shardIdOption("SHARD"))
    .option(
      "--restart",
      "close its links with a spread and end the node, for its supervisor to start it anew",
    )
    .addOption(new Option("--move-away").hideHelp())
    .option(
      "--spread-ms <ms>",
      `spread instead of the planned one, ${SPREAD_MS_MIN} to ${SPREAD_MS_MAX}`,
      integerOption("--spread-ms", SPREAD_MS_MIN, SPREAD_MS_MAX),
    )
    .option("--reason <text>", "why, for the log")
    .option("--detach", "do not watch")
    .option("--dry-run", "only say what would happen, with a forecast of the clients' return")
    .option("--json", "print one JSON object");
  addOperatorOptions(drain)
    .addHelpText("after", EXAMPLES)
    .action((shard: string, options: DrainOptions) => runDrain(shard, options));
}

async function runDrain(shard: string, options: DrainOptions): Promise<void> {
  assertKind(shard, options);
  const findClient = () => new FleetClient(findOperator(options));
  const client = findClient();
  const { spreadMs, reason, dryRun = false } = options;
  if (dryRun) return foretell(await client.orderDrain(shard, { dryRun, spreadMs }), options);
  const incarnation = await incarnationOf(client, shard);
  const forecast = await client.orderDrain(shard, { dryRun, spreadMs, reason });
  const { node, shards, links } = forecast;
  printMessage(
    `${node} leaves: ${links} links, spread ${forecast.spread_ms} ms; it runs ${shards.join(", ")}.`,
  );
  if (options.detach === true) {
    if (options.json === true) printJson({ ...forecastFields(forecast), ordered: true });
    return;
  }
  await watch({ shard, incarnation, forecast }, findClient, options);
}

function assertKind(shard: string, { restart, moveAway }: DrainOptions): void {
  if (restart === true && moveAway !== true) return;
  const got = moveAway === true ? "--move-away" : "nothing";
  const elsewhere = `moving its tenants away is not part of a drain yet: moor move --from ${shard} --spread --rate 50/s`;
  throw new ConfigError("drain", got, `--restart (${elsewhere})`);
}

/** The process that the shard's node is now, to know the next one by. */
async function incarnationOf(client: FleetClient, shard: string): Promise<string> {
  const { items } = await client.listNodes();
  const node = items.find(({ state, shards }) => state === "live" && shards.includes(shard));
  if (node !== undefined) return node.incarnation;
  const { items: shards } = await client.listShards();
  if (!shards.some(({ id }) => id === shard))
    throw new RefusedError("shard_not_found", `there is no shard ${shard}`);
  throw new RefusedError("conflict", `no node runs ${shard}`);
}

async function foretell(forecast: DrainForecast, { json }: DrainOptions): Promise<void> {
  const { predictArrivals } = await import("@moor/server/drains");
  const arrivals = predictArrivals({
    plan: {
      links: forecast.links,
      spreadMs: forecast.spread_ms,
      waves: forecast.waves.map(({ at_ms: atMs, links }) => ({ atMs, links })),
    },
    acceptRate: forecast.accept_rate,
    gapMs: forecast.gap_ms,
    isHandedOver: forecast.is_handed_over,
    isServedMeanwhile: forecast.is_served_meanwhile,
  });
  if (json === true) return printJson(forecastAnswer(forecast, arrivals));
  printAnswer(forecastText(forecast, arrivals));
  printMessage("Nothing was changed.");
}

async function watch(restart: Restart, client: () => FleetClient, { json }: DrainOptions): Promise<void> {
  const leave = (signal: NodeJS.Signals) => {
    printMessage("\nThe restart goes on.");
    process.kill(process.pid, signal);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, leave);
  try {
    const report = await watchRestart(restart, {
      client,
      runtime: createNodeRuntime(),
      output: stderrProgress(),
    });
    const { node } = restart.forecast;
    if (json === true) return printJson(report === undefined ? { node, links: 0 } : reportAnswer(report));
    printAnswer(report === undefined ? `${node} serves again; it had no links` : reportText(report));
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, leave);
  }
}
