// The token of a command: leads an agent's answer to the entry that holds the call.
//
// Spec: T5, T6, R20.
// Text: base64url(entry incarnation 8 bytes ‖ nonce 12 ‖ AES-256-GCM(call id) ‖ tag 16).
// A call lives and dies with its entry's process, so only that process needs to open its tokens: the key is made at
// its start and never leaves it. Other nodes read the incarnation and pass token and answer on.
// I1  Associated data = incarnation and tunnel: a token works for its own tunnel only.
// I2  Canonical base64url only: two texts never open to the same token.

import type { TunnelId } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { CallId, EntryId } from "../peer/peer-link.ts";
import { BOX_KEY_BYTES, BOX_NONCE_BYTES, BOX_OVERHEAD_BYTES, openBox, sealBox } from "./sealed-box.ts";

const ENTRY_BYTES = 8;

/** Makes and opens the command tokens of one entry. */
export interface CommandTokens {
  seal(tunnel: TunnelId, callId: CallId): string;
  /** The call behind a token of this entry and tunnel, else `undefined`. */
  open(tunnel: TunnelId, token: string): CallId | undefined;
}

/** @param entry incarnation, 16 hex characters */
export function createCommandTokens(entry: EntryId, runtime: Pick<Runtime, "randomBytes">): CommandTokens {
  const key = runtime.randomBytes(BOX_KEY_BYTES);
  const prefix = Buffer.from(entry, "hex");
  const associatedData = (tunnel: TunnelId) => Buffer.from(`${entry}\n${tunnel}`);
  return {
    seal(tunnel, callId) {
      const nonce = runtime.randomBytes(BOX_NONCE_BYTES);
      const box = sealBox(key, nonce, associatedData(tunnel), Buffer.from(callId, "utf8"));
      return Buffer.concat([prefix, box]).toString("base64url");
    },
    open(tunnel, token) {
      const bytes = decodeToken(token);
      if (bytes === undefined || entryOf(bytes) !== entry) return undefined;
      const opened = openBox(key, bytes.subarray(ENTRY_BYTES), associatedData(tunnel));
      return opened?.toString("utf8") as CallId | undefined;
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
  if (bytes.length <= ENTRY_BYTES + BOX_OVERHEAD_BYTES) return undefined;
  return bytes.toString("base64url") === token ? bytes : undefined;
}

function entryOf(bytes: Buffer): EntryId {
  return bytes.toString("hex", 0, ENTRY_BYTES) as EntryId;
}
