// `moor moves`: the record of moves, newest first.

import type { Command } from "commander";
import { FleetClient, type MoveJson } from "../fleet-client.ts";
import { moveAnswer } from "../fleet-output.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { integerOption, moveIdOption, tenantIdOption } from "../option-parsers.ts";
import { printJson, printMessage, printTable } from "../output.ts";

interface MovesOptions extends OperatorOptions {
  readonly tenant?: string;
  readonly id?: string;
  readonly limit: number;
  readonly after?: string;
  readonly json?: boolean;
}

/** Moves shown unless asked otherwise. */
const LIMIT_DEFAULT = 50;

/** Adds `moves` to the program. */
export function registerMovesCommand(program: Command): void {
  const moves = program
    .command("moves")
    .description("list moves, newest first: who moved what, when and why")
    .option("--tenant <id>", "only moves of this tunnel or home", tenantIdOption("--tenant"))
    .option("--id <move>", "only this move", moveIdOption("--id"))
    .option("--limit <n>", "moves on a page", integerOption("--limit", 1, 500), LIMIT_DEFAULT)
    .option("--after <cursor>", "the next of an earlier page")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(moves)
    .addHelpText(
      "after",
      "\nExamples:\n  moor moves\n  moor moves --tenant tunnel_0123456789abcdef0123456789abcdef --json",
    )
    .action(async (options: MovesOptions) => {
      const client = new FleetClient(findOperator(options));
      const { items, next } =
        options.id === undefined
          ? await client.listMoves(options)
          : { items: [await client.showMove(options.id)], next: null };
      if (options.json === true) return printJson({ items: items.map(moveAnswer), next });
      printTable(["at", "tenant", "from", "to", "revision", "actor", "reason"], items.map(rowOf));
      if (next !== null) printMessage(`More: --after ${next}`);
    });
}

function rowOf(move: MoveJson): string[] {
  const { at, tenant, from, to, revision, actor, reason, job } = move;
  const why = [reason, job === null ? "" : `(${job})`].filter((part) => part !== "").join(" ");
  return [at, tenant, from ?? "nowhere", to, String(revision), actor, why];
}
