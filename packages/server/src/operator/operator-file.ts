// DIR/operator.json: where this directory's operator listener is and the token that opens it, for commands on this machine.
//
// Spec: T2. Design: "Listeners".
// I1  The file is readable by its owner only and replaced as a whole: a reader sees the old or the new one.
// I2  The token is minted once per data directory; the URL is written anew at each start.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Secret, type Runtime } from "@moor/runtime";
import { mintKey, parseKey } from "../directory/keys.ts";
import { replaceFile } from "../replace-file.ts";

/** Name of the file in the data directory. */
export const OPERATOR_FILE = "operator.json";

/** What the file says. */
export interface OperatorFile {
  /** Base URL of the operator listener, e.g. `http://127.0.0.1:7070`. */
  readonly url: string;
  readonly token: Secret;
}

/** The operator token of a data directory: the file's if it has a valid one, else a new one, not yet written. */
export function loadOperatorToken(dataDir: string, runtime: Pick<Runtime, "randomBytes">): Secret {
  return readToken(join(dataDir, OPERATOR_FILE)) ?? mintKey("operator", runtime).key;
}

/** Writes the file. Throws what node:fs throws. */
export function writeOperatorFile(dataDir: string, content: OperatorFile): void {
  const text = `${JSON.stringify({ url: content.url, token: content.token.reveal() })}\n`;
  replaceFile(join(dataDir, OPERATOR_FILE), text);
}

function readToken(path: string): Secret | undefined {
  try {
    const content: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof content !== "object" || content === null || !("token" in content)) return undefined;
    const { token } = content;
    if (typeof token !== "string" || parseKey(token)?.kind !== "operator") return undefined;
    return new Secret(token);
  } catch {
    return undefined;
  }
}
