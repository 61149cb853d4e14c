// The files that `moor box` and `moor app` are pointed at: identity, service keys, token, certificates.
//
// I1  What is wrong with a file is said by its name and an error code; nothing of its content is repeated, unless it is
//     public.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { createBoxIdentityPem, parseBoxIdentity, type BoxIdentity } from "@moor/client";
import { decodeBase64url, parseLinkToken, parseNonce, serviceKeyId } from "@moor/protocol";
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
    try {
      claimed.fill(pem.reveal().trimEnd());
    } catch (error) {
      claimed.abandon();
      throw error;
    }
    return { identity: parseBoxIdentity(option, pem), isNew: true };
  }
  const identity = parseBoxIdentity(option, new Secret(readTextFile(option, file)));
  warnOfReaders(file);
  return { identity, isNew: false };
}

/** What an operator compares: the public key, and its id as `moor home show` has it. */
export function publicKeyLines({ publicKey }: BoxIdentity): string {
  const raw = decodeBase64url(publicKey) ?? new Uint8Array();
  return `public key ${publicKey}\nkey id ${serviceKeyId(createHash("sha256").update(raw).digest())}`;
}

/** The raw keys in these files, one a line; empty lines and those that start with # are skipped. Throws ConfigError for a
 *  line that is no key, and for a file without one. */
export function readServiceKeys(option: string, files: readonly string[]): string[] {
  return files.flatMap((file) => {
    const lines = serviceKeyLines(readTextFile(option, file));
    for (const { number, key } of lines) {
      if (parseNonce(key) !== undefined) continue;
      const got = `${JSON.stringify(file)}, line ${number}, a text of ${key.length} characters`;
      throw new ConfigError(option, got, SERVICE_KEY);
    }
    if (lines.length > 0) return lines.map(({ key }) => key);
    throw new ConfigError(option, `${JSON.stringify(file)}, which holds no key`, SERVICE_KEY);
  });
}

const SERVICE_KEY =
  "raw Ed25519 public keys, one a line: 43 characters of base64url, as `moor service-key list` shows them";

/** What stands for a raw key in a text, with the numbers of its lines. */
export function serviceKeyLines(text: string): { readonly number: number; readonly key: string }[] {
  const lines = text.split(/\r?\n/).map((line, index) => ({ number: index + 1, key: line.trim() }));
  return lines.filter(({ key }) => key !== "" && !key.startsWith("#"));
}

/** The app or extension token in a file. Throws ConfigError for what is none. */
export function readToken(option: string, file: string): Secret {
  const token = readSecret(option, file);
  if (parseLinkToken(token.reveal()) !== undefined) return token;
  const expected = "<home>.<secret>, as `moor home token create` makes it";
  throw new ConfigError(option, `${JSON.stringify(file)}, which holds no such token`, expected);
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

/** Throws ConfigError unless the folder that `file` is to be in exists, and `file` itself is no folder. */
export function assertFolder(option: string, file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new ConfigError(option, `${JSON.stringify(file)}, which is a folder`, "the path of a file");
  }
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
