// What the owner of a home sees of its links right now, as the operator API shows it.
//
// Spec: L23 (duplicate-identity), L31 (presence).

import type { NodeRecord } from "../directory/directory.ts";
import type { HomeStatus, LinkStatus } from "../peer/link-ports.ts";
import type { JsonObject } from "./operator-json.ts";

/**
 * @param status undefined when the owner's node does not answer
 * @param nodes every node: links are shown by the node that holds them, not by its incarnation
 */
export function homeLiveJson(
  status: HomeStatus | undefined,
  nodes: readonly Pick<NodeRecord, "id" | "incarnation">[],
): JsonObject | null {
  if (status === undefined) return null;
  const { presence, box, apps, duplicateIdentity, commandsOpen } = status;
  const linkJson = ({ entry, ageMs, isFollowing }: LinkStatus) => ({
    node: nodes.find(({ incarnation }) => incarnation === entry)?.id ?? null,
    age_ms: ageMs,
    shard: isFollowing,
  });
  return {
    presence: presence.box,
    since_ms: presence.sinceMs,
    box: box === undefined ? null : { ...linkJson(box), generation: box.generation },
    apps: apps.map((app) => ({ app: app.app, ...linkJson(app) })),
    duplicate_identity:
      duplicateIdentity === undefined
        ? null
        : { remaining_ms: duplicateIdentity.remainingMs, held_off: duplicateIdentity.heldOff },
    commands_open: commandsOpen,
  };
}
