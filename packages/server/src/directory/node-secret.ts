// The node secret: 32 bytes that every node of a residency holds in a file of its own and the directory never sees.
//
// I1  The file is readable by its owner only; what is in it never reaches a message.
// I2  It is on disk before anything is sealed under it: without it, what is sealed is lost.

import { existsSync, readFileSync } from "node:fs";
import { ConfigError, errorCodeOf, type Runtime } from "@moor/runtime";
import { writeDurableFile } from "../durable-file.ts";

/** File of the node secret in a data folder, where none is given. */
export const NODE_SECRET_FILE = "node.secret";

/** Bytes of a node secret. */
export const NODE_SECRET_BYTES = 32;

/** A node secret from its text: 43 base64url characters. Undefined for any other text. */
export function parseNodeSecret(text: string): Uint8Array | undefined {
  const trimmed = text.trim();
  const bytes = Buffer.from(trimmed, "base64url");
  const isCanonical = bytes.length === NODE_SECRET_BYTES && bytes.toString("base64url") === trimmed;
  return isCanonical ? new Uint8Array(bytes) : undefined;
}

/** Reads a node secret. Throws ConfigError, naming `option`, when there is none in the file. */
export function readNodeSecret(path: string, option = "nodeSecretFile"): Uint8Array {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const reason = errorCodeOf(error, "unreadable");
    throw new ConfigError(option, `${path} (${reason})`, "a file that this user may read");
  }
  const secret = parseNodeSecret(text);
  if (secret !== undefined) return secret;
  throw new ConfigError(
    option,
    `${path}, which holds no node secret`,
    "43 characters of base64url (32 bytes)",
  );
}

/** The node secret in `path`; a new one, mode 0600, where there is no such file. */
export function ensureNodeSecret(path: string, runtime: Pick<Runtime, "randomBytes">): Uint8Array {
  if (!existsSync(path)) writeNodeSecret(path, runtime);
  return readNodeSecret(path);
}

/** Writes a new node secret. Throws when the file exists. */
export function writeNodeSecret(path: string, runtime: Pick<Runtime, "randomBytes">): void {
  const text = Buffer.from(runtime.randomBytes(NODE_SECRET_BYTES)).toString("base64url");
  writeDurableFile(path, `${text}\n`);
}
