// The flags of every setting, for the commands that load a configuration, and the loading itself.

import { type Command, Option } from "commander";
import type { LoadedConfig } from "@moor/server/config";
import { SETTINGS } from "@moor/server/settings";

/** Adds a flag for each setting: `--public-port` for `public.port`. */
export function addSettingOptions(command: Command): Command {
  for (const { at, flag, variable } of SETTINGS) {
    command.addOption(new Option(`${flag} <value>`, `overrides ${at.join(".")} and ${variable}`));
  }
  return command;
}

/** The configuration of `file` with the environment and the command's flags over it. Throws ConfigError. */
export async function loadCommandConfig(file: string, command: Command): Promise<LoadedConfig> {
  const { loadConfig } = await import("@moor/server/config");
  const flags = new Map<string, string>();
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName());
    if (typeof value === "string" && option.long !== undefined) flags.set(option.long, value);
  }
  return loadConfig(file, { env: process.env, flags, workingDir: process.cwd() });
}
