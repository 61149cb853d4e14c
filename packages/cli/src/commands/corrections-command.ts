// `moor corrections on|off|status`: whether polls at a shard that is not the owner are told where to go.
//
// Spec: R24, R25.

import type { Command } from "commander";
import { FleetClient, type CorrectionsJson } from "../fleet-client.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { printAnswer, printJson, printMessage } from "../output.ts";

interface CorrectionsOptions extends OperatorOptions {
  readonly reason?: string;
  readonly json?: boolean;
}

const WORDS = {
  on: "tell agents that can follow a correction where their tunnel lives, in the whole residency",
  off: "correct no agent any more: every poll is served through the owner",
} as const;

/** Adds `corrections` and its verbs to the program. */
export function registerCorrectionsCommand(program: Command): void {
  const corrections = program
    .command("corrections")
    .description("switch corrections of agents on or off in a residency");
  registerSwitch(corrections, "on");
  registerSwitch(corrections, "off");
  const status = corrections
    .command("status")
    .description("say whether corrections are on")
    .option("--json", "print one JSON object");
  addOperatorOptions(status)
    .addHelpText("after", "\nExample:\n  moor corrections status")
    .action(async (options: CorrectionsOptions) => {
      print(await new FleetClient(findOperator(options)).corrections(), options);
    });
}

function registerSwitch(corrections: Command, to: "on" | "off"): void {
  const command = corrections
    .command(to)
    .description(WORDS[to])
    .option("--reason <text>", "why, for the audit")
    .option("--json", "print one JSON object");
  addOperatorOptions(command)
    .addHelpText(
      "after",
      `\nIt takes effect at each node as its view catches up.\n\nExample:\n  moor corrections ${to}`,
    )
    .action(async (options: CorrectionsOptions) => {
      print(
        await new FleetClient(findOperator(options)).setCorrections(to === "on", options.reason),
        options,
      );
      printMessage(`To undo: moor corrections ${to === "on" ? "off" : "on"}`);
    });
}

function print({ residency, on }: CorrectionsJson, { json }: CorrectionsOptions): void {
  if (json === true) return printJson({ residency, on });
  printAnswer(`corrections are ${on ? "on" : "off"} in residency ${residency}`);
}
