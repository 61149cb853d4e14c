// The token of a command: leads an agent's answer to the entry that holds the call.
//
// Spec: T5, T6, R20.
// Text: base64url(entry incarnation 8 bytes ‖ nonce 12 ‖ AES-256-GCM(call id) ‖ tag 16).
// A call lives and dies with its entry's process, so only that process needs to open its tokens: the key is made at
// its start and never leaves it. Other nodes read the incarnation and pass token and answer on.
// I1  Associated data = incarnation and tunnel: a token works for its own tunnel only.
// I2  Canonical base64url only: two texts never open to the same token.

import { createCipheriv, createDecipheriv } from "node:crypto";
import type { TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { CallId, EntryId } from "../peer/peer-link.ts";

const ALGORITHM = "aes-256-gcm";
const ENTRY_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** Makes and opens the command tokens of one entry. */
export interface CommandTokens {
  seal(tunnel: TunnelId, callId: CallId): string;
  /** The call behind a token of this entry and tunnel, else `undefined`. */
  open(tunnel: TunnelId, token: string): CallId | undefined;
}

/** @param entry incarnation, 16 hex characters */
export function createCommandTokens(entry: EntryId, runtime: Pick<Runtime, "randomBytes">): CommandTokens {
  const key = runtime.randomBytes(KEY_BYTES);
  const prefix = Buffer.from(entry, "hex");
  const associatedData = (tunnel: TunnelId) => Buffer.from(`${entry}\n${tunnel}`);
  return {
    seal(tunnel, callId) {
      const nonce = runtime.randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(associatedData(tunnel));
      const sealed = cipher.update(callId, "utf8");
      cipher.final();
      return Buffer.concat([prefix, nonce, sealed, cipher.getAuthTag()]).toString("base64url");
    },
    open(tunnel, token) {
      const bytes = decodeToken(token);
      if (bytes === undefined || entryOf(bytes) !== entry) return undefined;
      const tagStart = bytes.length - TAG_BYTES;
      const nonce = bytes.subarray(ENTRY_BYTES, ENTRY_BYTES + NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(associatedData(tunnel));
      decipher.setAuthTag(bytes.subarray(tagStart));
      const opened = decipher.update(bytes.subarray(ENTRY_BYTES + NONCE_BYTES, tagStart));
      try {
        decipher.final();
        return opened.toString("utf8") as CallId;
      } catch {
        return undefined;
      }
    },
  };
}

/** The entry that a token says it is of; `undefined` for a text that is no command token at all. */
export function commandTokenEntry(token: string): EntryId | undefined {
  const bytes = decodeToken(token);
  return bytes === undefined ? undefined : entryOf(bytes);
}

function decodeToken(token: string): Buffer | undefined {
  const bytes = Buffer.from(token, "base64url");
  if (bytes.length <= ENTRY_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
  return bytes.toString("base64url") === token ? bytes : undefined;
}

function entryOf(bytes: Buffer): EntryId {
  return bytes.toString("hex", 0, ENTRY_BYTES) as EntryId;
}
