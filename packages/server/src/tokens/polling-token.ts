// The polling token: a tunnel's placement, sealed for the client to carry back.
//
// Spec: R10, R23. Plaintext: `1`, shard, revision, each on a line; no time, issuer or random part.
// I1  One tunnel at one revision has one token, whoever seals it and whenever: the placement names key and format.

import { REVISION_MAX, type TunnelId } from "@moor/protocol";
import { parseShardId } from "../directory/directory.ts";
import type { KnownPlacement } from "../peer/peer-link.ts";
import type { TokenSealer } from "./token-sealer.ts";

/** The only format so far; a placement made with another is sealed by newer nodes only. */
const FORMAT = 1;

/** The token of a placement; `undefined` when this node lacks its key or format. */
export function sealPollingToken(
  sealer: TokenSealer,
  tunnel: TunnelId,
  placement: KnownPlacement,
): string | undefined {
  if (placement.tokenFormat !== FORMAT || placement.tokenKey === undefined) return undefined;
  const plaintext = Buffer.from(`${FORMAT}\n${placement.shard}\n${placement.revision}`);
  return sealer.sealDeterministic(placement.tokenKey, tunnel, plaintext);
}

/** Where a polling token of this tunnel points: shard and revision. `undefined` is as no token (R23). */
export function openPollingToken(
  sealer: TokenSealer,
  tunnel: TunnelId,
  token: string,
): KnownPlacement | undefined {
  const plaintext = sealer.open(tunnel, token);
  if (plaintext === undefined) return undefined;
  const [format, shardText, revisionText, ...rest] = Buffer.from(plaintext).toString("utf8").split("\n");
  const shard = parseShardId(shardText ?? "");
  const revision = Number(revisionText);
  if (format !== String(FORMAT) || shard === undefined || rest.length > 0) return undefined;
  if (!Number.isInteger(revision) || revision < 1 || revision > REVISION_MAX) return undefined;
  return { shard, revision };
}
