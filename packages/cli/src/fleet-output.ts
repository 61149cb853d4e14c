// Moves and jobs as `--json` shows them.

import type { JobJson, MoveJson } from "./fleet-client.ts";

/** A move; `acked` is for the API alone. */
export function moveAnswer(move: MoveJson): Record<string, unknown> {
  const { id, tenant, from, to, revision, at, actor, reason, job } = move;
  return { id, tenant, from, to, revision, at, actor, reason, job };
}

/** A job with its progress. */
export function jobAnswer(job: JobJson): Record<string, unknown> {
  const { created_at: createdAt, blocked_tenants: blockedTenants, ...rest } = job;
  return { ...rest, blockedTenants, createdAt };
}
