// Who keeps a home on the default shard, as `moor move` finds it out and says it.
//
// Spec: L22.   I1  A dry run is refused for what the move would be refused for.

import { RefusedError } from "./exit-code.ts";
import type { FleetClient, JobJson } from "./fleet-client.ts";
import type { BlockerJson, HomeClient } from "./home-client.ts";
import { blockerLines } from "./home-output.ts";
import { printMessage } from "./output.ts";

const BREAKS =
  "They stay at the base host and are relayed from there: they are cut off whenever those nodes, or their way to the new shard, are down.";

/** Who would keep a tenant from going to `to`; nobody keeps a tunnel, or a home from the default shard. */
export async function findBlockers(
  { fleet, homes }: { readonly fleet: FleetClient; readonly homes: HomeClient },
  tenant: string,
  to: string,
): Promise<readonly BlockerJson[]> {
  if (tenant.startsWith("tunnel_")) return [];
  const { items } = await fleet.listShards();
  if (items.some((shard) => shard.id === to && shard.default)) return [];
  return (await homes.showHome(tenant)).move_blockers;
}

/** The refusal of a dry run, as the service would refuse the move. Says on stderr who blocks it. */
export function refuseBlocked(home: string, blockers: readonly BlockerJson[]): RefusedError {
  printMessage(blockedText(home, blockers));
  return new RefusedError("move_blocked", `home ${home} stays on the default shard`);
}

/** Says on stderr who blocks a move that the service refused. */
export function explainRefusal(home: string, error: unknown): void {
  if (!(error instanceof RefusedError) || error.code !== "move_blocked") return;
  const { blockers, total } = error.data;
  if (!Array.isArray(blockers)) return;
  printMessage(blockedText(home, blockers as readonly BlockerJson[], total));
}

/** Says on stderr what a forced move breaks, and for whom. */
export function warnOfForce(blockers: readonly BlockerJson[]): void {
  if (blockers.length > 0) printMessage(`These do not follow shards:\n${blockerLines(blockers)}\n${BREAKS}`);
}

/** The end of a job that left homes where they were. */
export function keptBehind(job: JobJson): RefusedError {
  const { blocked, blocked_tenants: named } = job;
  const more = blocked > named.length ? ` and ${blocked - named.length} more` : "";
  return new RefusedError(
    "move_blocked",
    `${blocked} of ${job.total} stay on ${job.from}, since not everybody at them follows shards: ${named.join(", ")}${more}. ` +
      "`moor home show HOME` says who; --force moves them all the same.",
  );
}

function blockedText(
  home: string,
  blockers: readonly BlockerJson[],
  total: unknown = blockers.length,
): string {
  const more = typeof total === "number" && total > blockers.length ? total - blockers.length : 0;
  const rest = more === 0 ? "" : `\n  and ${more} more`;
  return `home ${home} is kept on the default shard by\n${blockerLines(blockers)}${rest}\n--force moves it all the same. ${BREAKS}`;
}
