// Nodes, leases and leadership, as the directory offers them.
//
// Design: "Liveness".

import { ProtocolError } from "@moor/protocol";
import { integerAt } from "../columns.ts";
import type { Directory } from "../directory.ts";
import { NODE_ROLES } from "../records.ts";
import { rowsOf } from "../store.ts";
import { assertText } from "../tunnel-input.ts";
import type { DirectoryParts } from "./directory-parts.ts";
import { ensureServiceKey } from "./service-key-operations.ts";

type NodeOperations = Pick<Directory, "registerNode" | "leaveNode" | "renewLeases" | "tryLead">;

/** Longest lease of the leader. Milliseconds: ten minutes. */
const LEAD_MS_MAX = 600_000;

/** Operations on nodes. */
export function nodeOperations(parts: DirectoryParts): NodeOperations {
  return {
    async registerNode(node) {
      const { id, incarnation, shards, internalUrl = "", roles = NODE_ROLES, version = "" } = node;
      assertText("version", version, 0, 64);
      const rows = await parts.change({
        kind: "register-node",
        id,
        incarnation,
        internalUrl,
        roles: roles.join(","),
        version,
        shards,
      });
      parts.self = { id, incarnation };
      await placeDroppedTenants(parts);
      await ensureServiceKey(parts);
      return { startRevision: integerAt(rows[0], "start_revision") };
    },
    async leaveNode({ id, incarnation }) {
      await parts.change({ kind: "leave-node", id, incarnation });
    },
    async renewLeases({ node, incarnation, shards, seq = parts.replica.seq }) {
      rowsOf(await parts.store.commitLease({ kind: "renew-leases", node, incarnation, shards, seq }));
    },
    async tryLead({ node, incarnation, ttlMs }) {
      if (!(ttlMs >= 1 && ttlMs <= LEAD_MS_MAX)) {
        throw new ProtocolError("invalid_request", { param: "ttlMs", message: "ttlMs is 1 to 600,000" });
      }
      const rows = rowsOf(await parts.store.commitLease({ kind: "try-lead", node, incarnation, ttlMs }));
      return rows.length > 0;
    },
  };
}

/** Places tenants of shards that no node names any more, batch by batch. */
async function placeDroppedTenants(parts: DirectoryParts): Promise<void> {
  for (;;) {
    const placed = await parts.change({ kind: "place-dropped" });
    if (placed.length === 0) return;
  }
}
