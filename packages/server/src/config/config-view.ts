// A configuration as `moor config print` shows it: effective values, secrets masked, where overrides came from.

import type { LoadedConfig } from "./load-config.ts";
import { maskDatabaseUrl, readDatabaseUrl } from "./database-url.ts";

/** What is shown. */
export interface ConfigView {
  /** The settings with their defaults. None of them holds a secret. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Setting → variable or flag that gave it. */
  readonly overrides: Readonly<Record<string, string>>;
  /** The database's URL without password and parameters; null with SQLite. */
  readonly databaseUrl: string | null;
}

/** The view. Throws ConfigError when the database URL cannot be read. */
export function viewConfig(
  { config, overrides }: LoadedConfig,
  env: Readonly<Record<string, string | undefined>>,
): ConfigView {
  const postgres = config.directory?.postgres;
  const databaseUrl = postgres === undefined ? null : maskDatabaseUrl(readDatabaseUrl(postgres, env));
  return { config, overrides: Object.fromEntries(overrides), databaseUrl };
}
