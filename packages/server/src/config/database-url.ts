// The database URL that a configuration names: read from its file or variable, never from the configuration itself.
//
// I1  A message about it names its place and never repeats a part of it.

import { readFileSync } from "node:fs";
import { ConfigError, errorCodeOf, Secret } from "@moor/runtime";
import { DATABASE_URL_VARIABLE } from "./config-settings.ts";
import type { NodeConfig } from "./config-schema.ts";

const URL_EXPECTED = "a postgres:// URL with a host and a database";

/** The URL of the database. Throws ConfigError when it cannot be read or is none. */
export function readDatabaseUrl(
  postgres: NonNullable<NonNullable<NodeConfig["directory"]>["postgres"]>,
  env: Readonly<Record<string, string | undefined>>,
): Secret {
  const { urlFile, env: variable = DATABASE_URL_VARIABLE } = postgres;
  const name = urlFile === undefined ? variable : "directory.postgres.urlFile";
  const text = (
    urlFile === undefined ? (env[variable] ?? "") : readSecretFile(name, urlFile).toString()
  ).trim();
  if (text === "") throw new ConfigError(name, "nothing", URL_EXPECTED);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["postgres:", "postgresql:"].includes(url.protocol)) {
    throw new ConfigError(name, "something else (not shown)", URL_EXPECTED);
  }
  return new Secret(text);
}

/** `url` as it may be shown: without password and parameters. */
export function maskDatabaseUrl(url: Secret): string {
  const { protocol, username, password, host, pathname } = new URL(url.reveal());
  const user = username === "" ? "" : `${username}${password === "" ? "" : ":***"}@`;
  return `${protocol}//${user}${host}${pathname}`;
}

function readSecretFile(option: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const reason = errorCodeOf(error, "unreadable");
    throw new ConfigError(option, `${file} (${reason})`, "a file this user can read");
  }
}
