// `moor config check|print|schema|secret`: what `moor serve` would make of a configuration, and the secret it names.

import type { Command } from "commander";
import { ConfigError, errorCodeOf, createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { addSettingOptions, loadCommandConfig } from "../config-options.ts";
import { printAnswer, printJson, printMessage } from "../output.ts";
import { readVersion } from "../version.ts";

interface Shown {
  readonly json?: boolean;
}

/** Adds `config` and its verbs to the program. */
export function registerConfigCommand(program: Command): void {
  const config = program.command("config").description("check and show configurations of `moor serve`");
  registerCheck(config);
  registerPrint(config);
  registerSecret(config);
  config
    .command("schema")
    .description("print the JSON Schema of configurations")
    .addHelpText("after", "\nExample:\n  moor config schema > moor.schema.json")
    .action(async () => {
      const { configJsonSchema } = await import("@moor/server/config");
      printAnswer(JSON.stringify(configJsonSchema(), null, 2));
    });
}

function registerCheck(config: Command): void {
  const check = config
    .command("check")
    .description("say whether `moor serve` can use a configuration, its secrets and its certificates")
    .argument("<file>", "configuration, JSON")
    .option("--json", "print one JSON object");
  addSettingOptions(check)
    .addHelpText("after", "\nNothing is opened but files.\n\nExample:\n  moor config check moor.json")
    .action(async (file: string, options: Shown, command: Command) => {
      const loaded = await loadCommandConfig(file, command);
      const { configNodeOptions } = await import("@moor/server/config");
      configNodeOptions(loaded.config, {
        env: process.env,
        version: readVersion(),
        runtime: createNodeRuntime(),
        logger: createSilentLogger(),
      });
      const { id, residency, roles, shards } = loaded.config;
      if (options.json === true) return printJson({ ok: true, id, residency, roles, shards });
      printAnswer(
        `${file} can be used: node ${id} of residency ${residency}, roles ${roles.join(", ")}, ` +
          `shards ${shards.join(", ") || "none"}`,
      );
    });
}

function registerSecret(config: Command): void {
  config
    .command("secret")
    .description("write a new node secret, for nodeSecretFile; copy it to every node of the residency")
    .argument("<file>", "file to make, mode 0600")
    .addHelpText("after", "\nIt is not shown.\n\nExample:\n  moor config secret node.secret")
    .action(async (file: string) => {
      const { writeNodeSecret } = await import("@moor/server/config");
      try {
        writeNodeSecret(file, createNodeRuntime());
      } catch (error) {
        const reason = errorCodeOf(error, "unusable");
        throw new ConfigError("FILE", `${file} (${reason})`, "the path of a file that does not exist yet");
      }
      printAnswer(`a node secret is in ${file}`);
    });
}

function registerPrint(config: Command): void {
  const print = config
    .command("print")
    .description("print the configuration in effect: defaults and overrides included, secrets masked")
    .argument("<file>", "configuration, JSON")
    .option("--json", "print one JSON object with the sources of overrides");
  addSettingOptions(print)
    .addHelpText(
      "after",
      "\nExamples:\n  moor config print moor.json\n  MOOR_PUBLIC_PORT=443 moor config print moor.json --json",
    )
    .action(async (file: string, options: Shown, command: Command) => {
      const loaded = await loadCommandConfig(file, command);
      const { viewConfig } = await import("@moor/server/config");
      const view = viewConfig(loaded, process.env);
      if (options.json === true) return printJson(view);
      printAnswer(JSON.stringify(view.config, null, 2));
      for (const [setting, source] of Object.entries(view.overrides))
        printMessage(`${setting}: from ${source}`);
      if (view.databaseUrl !== null) printMessage(`database: ${view.databaseUrl}`);
    });
}
