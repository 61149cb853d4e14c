// Which directory a command works on: the one of a configuration, of a database URL, or of a data folder.
//
// I1  A database URL comes from a file or the environment, never from the command line, and is never printed.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { ConfigError, errorCodeOf, Secret } from "@moor/runtime";
import type { ToolOptions } from "@moor/server/directory-tools";
import { defaultDataDir } from "./data-dir.ts";

/** How a command line names a directory. */
export interface LocationOptions {
  readonly config?: string;
  readonly databaseUrlFile?: string;
  readonly data?: string;
}

/** A directory, and the data folder of a node that uses it, where one was named. */
export interface FoundLocation {
  readonly location: ToolOptions["location"];
  readonly dataDir: string | undefined;
}

/** Adds the options that name a directory. */
export function addLocationOptions(command: Command): Command {
  return command
    .option("--config <file>", "configuration of a node that uses the directory")
    .option("--database-url-file <file>", "file with the URL of PostgreSQL (or set MOOR_DATABASE_URL)")
    .option("--data <dir>", "data folder of a node; without a database URL, the directory in it");
}

/** The directory that `options` and the environment name. Throws ConfigError. */
export async function findLocation(
  options: LocationOptions,
  env: NodeJS.ProcessEnv = process.env,
): Promise<FoundLocation> {
  if (options.config !== undefined) return locationOfConfig(options.config, env);
  const dataDir = options.data === undefined ? undefined : resolve(options.data);
  const url = findUrl(options, env);
  if (url !== undefined) return { location: { kind: "postgres", url }, dataDir };
  const dir = dataDir ?? resolve(defaultDataDir(env));
  return { location: { kind: "sqlite", dir }, dataDir: dir };
}

function findUrl(options: LocationOptions, env: NodeJS.ProcessEnv): Secret | undefined {
  const file = options.databaseUrlFile;
  if (file !== undefined) return new Secret(readUrlFile(file));
  const fromEnvironment = env["MOOR_DATABASE_URL"]?.trim() ?? "";
  return fromEnvironment === "" ? undefined : new Secret(fromEnvironment);
}

function readUrlFile(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    const reason = errorCodeOf(error, "unreadable");
    throw new ConfigError("--database-url-file", `${file} (${reason})`, "a file this user can read");
  }
}

async function locationOfConfig(file: string, env: NodeJS.ProcessEnv): Promise<FoundLocation> {
  const { configNodeOptions, loadConfig } = await import("@moor/server/config");
  const { createNodeRuntime, createSilentLogger } = await import("@moor/runtime");
  const { config } = loadConfig(file, { env, flags: new Map(), workingDir: process.cwd() });
  const surroundings = { env, version: "", runtime: createNodeRuntime(), logger: createSilentLogger() };
  const { directory, dataDir } = configNodeOptions(config, surroundings);
  switch (directory.kind) {
    case "sqlite":
      return { location: { kind: "sqlite", dir: dataDir }, dataDir };
    case "postgres":
      return { location: { kind: "postgres", url: directory.url }, dataDir };
    case "none":
      throw new ConfigError("--config", `${file}, a node without a directory`, "a node that has one");
  }
}
