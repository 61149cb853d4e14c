// The files that `moor box` and `moor app` are pointed at: identity, service keys, token, certificates.
//
// I1  What is wrong with a file is said by its name and an error code; nothing of its content is repeated, unless it is
//     public.

import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { createBoxIdentityPem, parseBoxIdentity, type BoxIdentity } from "@moor/client";
import { ConfigError, errorCodeOf, Secret } from "@moor/runtime";
import { printMessage } from "./output.ts";
import { claimSecretFile } from "./secret-file.ts";

/** The text of a file, or of stdin for `-`. Throws ConfigError when it cannot be read. */
export function readTextFile(option: string, file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    const got = `${JSON.stringify(file)} (${errorCodeOf(error, "unreadable")})`;
    throw new ConfigError(option, got, "a file that can be read");
  }
}

/** An identity that was read or made. */
export interface FoundIdentity {
  readonly identity: BoxIdentity;
  readonly isNew: boolean;
}

/** The identity in a file; made, with mode 0600, if there is none. Throws ConfigError. */
export function findIdentity(option: string, file: string): FoundIdentity {
  if (!existsSync(file)) {
    const claimed = claimSecretFile(option, file);
    const pem = createBoxIdentityPem();
    claimed.fill(pem.reveal().trimEnd());
    return { identity: parseBoxIdentity(option, pem), isNew: true };
  }
  const identity = parseBoxIdentity(option, new Secret(readTextFile(option, file)));
  warnOfReaders(file);
  return { identity, isNew: false };
}

/** The raw keys in these files, one a line; empty lines and those that start with # are skipped. */
export function readServiceKeys(option: string, files: readonly string[]): string[] {
  return files.flatMap((file) => serviceKeyLines(readTextFile(option, file)));
}

/** The raw keys in a text. */
export function serviceKeyLines(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

/** The one secret in a file. Throws ConfigError for an empty one. */
export function readSecret(option: string, file: string): Secret {
  const text = readTextFile(option, file).trim();
  if (text === "")
    throw new ConfigError(option, `${JSON.stringify(file)}, which is empty`, "a file with the text");
  return new Secret(text);
}

/** Certificates to trust, as options of a client. */
export function trustOf(caFile: string | undefined): { readonly ca?: string } {
  if (caFile === undefined) return {};
  const ca = readTextFile("--ca-file", caFile);
  if (!ca.includes("-----BEGIN CERTIFICATE-----")) {
    throw new ConfigError("--ca-file", `${JSON.stringify(caFile)} without a certificate`, "PEM certificates");
  }
  return { ca };
}

/** Throws ConfigError unless the folder that `file` is to be in exists. */
export function assertFolder(option: string, file: string): void {
  const folder = path.dirname(path.resolve(file));
  if (existsSync(folder)) return;
  throw new ConfigError(
    option,
    `${JSON.stringify(file)} in a folder that does not exist`,
    "a folder that does",
  );
}

function warnOfReaders(file: string): void {
  if (process.platform === "win32") return;
  const mode = statSync(file).mode & 0o777;
  if ((mode & 0o077) === 0) return;
  printMessage(`${file} is a private key that others may read (mode ${mode.toString(8)}): chmod 600 it`);
}
