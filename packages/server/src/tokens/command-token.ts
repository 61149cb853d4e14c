// The token of a command: leads an agent's answer to the entry that holds the call.
//
// Spec: T5, T6, R20.
// Plaintext: entry incarnation, `\n`, call id. The tunnel is bound by the seal.

import type { TunnelId } from "@moor/protocol";
import type { CallId, EntryId } from "../peer/peer-link.ts";
import type { TokenSealer } from "./token-sealer.ts";

/** Where an answer belongs. */
export interface CommandAddress {
  readonly entry: EntryId;
  readonly callId: CallId;
}

/** The `shard_token` of a call's command. */
export function sealCommandToken(sealer: TokenSealer, tunnel: TunnelId, address: CommandAddress): string {
  return sealer.seal(tunnel, Buffer.from(`${address.entry}\n${address.callId}`));
}

/** Where the answer with this token belongs; `undefined` for a token that is not of a command of this tunnel. */
export function openCommandToken(
  sealer: TokenSealer,
  tunnel: TunnelId,
  token: string,
): CommandAddress | undefined {
  const plaintext = sealer.open(tunnel, token);
  if (plaintext === undefined) return undefined;
  const [entry, callId, ...rest] = Buffer.from(plaintext).toString().split("\n");
  if (entry === undefined || callId === undefined || rest.length > 0) return undefined;
  return { entry: entry as EntryId, callId: callId as CallId };
}
