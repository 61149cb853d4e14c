// Session ids of channels whose sessions live in one agent process: the instance is sealed inside.
//
// Spec: T8. The caller's `Mcp-Session-Id` is this token; the target sees its own id, or none where it gave none.
// So pinning needs no table and survives moves and restarts.
// I1  The channel is part of the plaintext: a session of one channel is none on another.

import { parseInstanceId, type ChannelName, type InstanceId, type TunnelId } from "@moor/protocol";
import type { TokenSealer } from "./token-sealer.ts";

/** What a sealed session id says. */
export interface PinnedSession {
  readonly channel: ChannelName;
  readonly instance: InstanceId;
  /** The target's own session id; `undefined` where the service minted the session. */
  readonly targetSessionId: string | undefined;
}

/** Marks sealed session ids, so that a target's own ids are passed on without trying to open them. */
const PREFIX = "ms1_";

/** The session id that a caller gets for a session pinned to `session.instance`; `undefined` without a sealing key. */
export function sealSessionId(
  sealer: TokenSealer,
  tunnel: TunnelId,
  session: PinnedSession,
): string | undefined {
  const parts = [session.channel, session.instance, session.targetSessionId ?? ""];
  const sealed = sealer.seal(tunnel, Buffer.from(JSON.stringify(parts)));
  return sealed === undefined ? undefined : PREFIX + sealed;
}

/** What a caller's session id is: one we sealed, the target's own, or one of ours that does not open here (any more). */
export type OpenedSession =
  | { readonly kind: "pinned"; readonly session: PinnedSession }
  | { readonly kind: "targets-own" }
  | { readonly kind: "broken" };

/** Opens a session id for this tunnel and channel. */
export function openSessionId(
  sealer: TokenSealer,
  tunnel: TunnelId,
  channel: ChannelName,
  sessionId: string,
): OpenedSession {
  if (!sessionId.startsWith(PREFIX)) return { kind: "targets-own" };
  const plaintext = sealer.open(tunnel, sessionId.slice(PREFIX.length));
  if (plaintext === undefined) return { kind: "broken" };
  const parts = JSON.parse(Buffer.from(plaintext).toString("utf8")) as [string, string, string];
  const instance = parseInstanceId(parts[1]);
  if (parts[0] !== channel || instance === undefined) return { kind: "broken" };
  const targetSessionId = parts[2] === "" ? undefined : parts[2];
  return { kind: "pinned", session: { channel, instance, targetSessionId } };
}
