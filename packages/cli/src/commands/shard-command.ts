// `moor shard default`: where new homes are placed, and where the base host leads.
//
// Spec: L22.

import type { Command } from "commander";
import { RefusedError } from "../exit-code.ts";
import { FleetClient } from "../fleet-client.ts";
import { HomeClient } from "../home-client.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { shardIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage } from "../output.ts";

interface DefaultOptions extends OperatorOptions {
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Adds `shard` and its verb to the program. */
export function registerShardCommand(program: Command): void {
  const shard = program.command("shard").description("look after one shard");
  const setDefault = shard
    .command("default")
    .description("place new homes on a shard, and let the base host lead to it; homes stay where they are")
    .argument("<shard>", "a live shard", shardIdOption("SHARD"))
    .option("--reason <text>", "why, for the audit")
    .option("--dry-run", "only say what would change")
    .option("--json", "print one JSON object");
  addOperatorOptions(setDefault)
    .addHelpText("after", '\nExample:\n  moor shard default s2 --reason "s1 is full"')
    .action(runDefault);
}

async function runDefault(to: string, options: DefaultOptions): Promise<void> {
  const address = findOperator(options);
  const isDryRun = options.dryRun === true;
  const { items } = await new FleetClient(address).listShards();
  const before = items.find((shard) => shard.default);
  if (isDryRun) {
    const target = items.find(({ id }) => id === to);
    if (target === undefined) throw new RefusedError("shard_not_found", `there is no shard ${to}`);
    if (target.state !== "live") throw new RefusedError("conflict", `shard ${to} is not live`);
  } else {
    await new HomeClient(address).setDefaultShard(to, options.reason);
  }
  if (options.json === true) {
    return printJson({ shard: to, before: before?.id ?? null, dryRun: isDryRun });
  }
  printAnswer(`${isDryRun ? "would place" : "placing"} new homes on ${to}, where the base host leads`);
  if (before !== undefined && before.id !== to && before.homes > 0) {
    printMessage(`${before.homes} homes stay on ${before.id}: moor move HOME --to ${to}`);
  }
  if (isDryRun) return printMessage("Nothing was changed.");
  if (before !== undefined) printMessage(`To undo: moor shard default ${before.id}`);
}
