// Reads a configuration file, lays the environment and flags over it and judges the whole.
//
// I1  A start from a bad configuration changes nothing: everything is judged before anything is opened.

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError, errorCodeOf } from "@moor/runtime";
import {
  applyOverrides,
  resolveFilePaths,
  type Draft,
  type Overrides,
  type OverrideSources,
} from "./config-overrides.ts";
import { configRefusal } from "./config-refusal.ts";
import { CONFIG_SCHEMA, type NodeConfig } from "./config-schema.ts";

/** A configuration and where its values came from. */
export interface LoadedConfig {
  readonly config: NodeConfig;
  /** Settings that a variable or flag gave. */
  readonly overrides: Overrides;
}

/** Largest configuration file, bytes: far above any that a person writes. */
const FILE_BYTES_MAX = 1024 * 1024;

/** The configuration that `file` and the sources make. Throws ConfigError (exit code 2) naming what is wrong. */
export function loadConfig(file: string, sources: OverrideSources): LoadedConfig {
  const draft = readObject(file);
  resolveFilePaths(draft, dirname(resolve(sources.workingDir, file)));
  const overrides = applyOverrides(draft, sources);
  const parsed = CONFIG_SCHEMA.safeParse(draft);
  if (!parsed.success) throw configRefusal(parsed.error.issues, { file, draft, overrides });
  return { config: parsed.data, overrides };
}

function readObject(file: string): Draft {
  const value = parseJson(file, readText(file));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Draft;
  throw new ConfigError(file, "JSON that is no object", "a JSON object");
}

function readText(file: string): string {
  try {
    const bytes = readFileSync(file);
    if (bytes.length > FILE_BYTES_MAX) {
      throw new ConfigError(file, `${bytes.length} bytes`, `at most ${FILE_BYTES_MAX} bytes`);
    }
    return bytes.toString("utf8");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const reason = errorCodeOf(error, "unreadable");
    throw new ConfigError("--config", `${file} (${reason})`, "a file with a configuration");
  }
}

/** The engine's message would repeat a part of the file; the place is enough. */
function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const place = error instanceof Error ? /line \d+ column \d+/.exec(error.message)?.[0] : undefined;
    const where = place === undefined ? "" : ` (${place})`;
    throw new ConfigError(file, `text that is no JSON${where}`, "a JSON object, without comments");
  }
}
