// The database away: for seconds under load, and in the middle of moves.

import { createNodeRuntime, sleep } from "@moor/runtime";
import {
  errorOf,
  faultsOf,
  NO_FAULTS,
  until,
  verifies,
  type OperatorClient,
  type OperatorReply,
} from "@moor/testkit";
import { expect } from "vitest";
import { runOutage } from "../prove/outage-scenario.ts";
import { SHORT_PACE, startTestCluster, tunnelOn } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

/** Moments between order and cut. Milliseconds: around what a move takes. */
const CUT_AFTER_MS = [0, 1, 2, 3, 4, 6, 8, 12];

/** What the operator was told of a move: made, not made, or the id to ask by. */
function toldOf(
  reply: OperatorReply,
): { readonly kind: "made" | "not-made" } | { readonly kind: "ask"; readonly move: string } {
  if (reply.status === 200) return { kind: "made" };
  const error = errorOf(reply);
  expect(error?.code).toBe("directory_unavailable");
  const { outcome, move } = (error?.data ?? {}) as { readonly outcome?: string; readonly move?: string };
  return outcome === "unknown" && move !== undefined ? { kind: "ask", move } : { kind: "not-made" };
}

async function wasMade(operator: OperatorClient, told: ReturnType<typeof toldOf>): Promise<boolean> {
  if (told.kind !== "ask") return told.kind === "made";
  const reply = await operator.request("GET", `/v1/moves/${told.move}`);
  expect([200, 404]).toContain(reply.status);
  return reply.status === 200;
}

describePostgres("a database that goes away", (server) => {
  verifies(
    ["T1", "R22"],
    "calls go on, first contacts at every node too; changes are refused by name; all heals alone",
    async () => {
      const { load, firstContacts, refusals, messages } = await runOutage(SHORT_PACE, server());
      expect({ failures: load.failures, ...faultsOf(load) }).toEqual({ failures: [], ...NO_FAULTS });
      expect(faultsOf(firstContacts)).toEqual(NO_FAULTS);
      expect(firstContacts.calls).toBeGreaterThan(0);
      expect([...new Set(refusals)]).toEqual(["directory_unavailable"]);
      for (const message of messages)
        expect(message).toMatch(/^changes are not possible now: |whether move_\w+ was made is told once/);
    },
    120_000,
  );

  verifies(
    "R22",
    "in the middle of a move leaves it made or not, and the operator is told which, or how to ask",
    async () => {
      const cluster = await startTestCluster(
        { nodes: [{ id: "a", shards: ["s1", "s2"], hasDatabaseProxy: true }] },
        server(),
      );
      const { operator, databaseProxy } = cluster.node("a");
      const tunnel = await tunnelOn(cluster, "s1");
      let shard = "s1";
      const seen = new Set<string>();
      for (const [round, cutAfterMs] of CUT_AFTER_MS.entries()) {
        const to = shard === "s1" ? "s2" : "s1";
        const ordered = operator.move(tunnel.id, to, `round ${round}`);
        await sleep(createNodeRuntime(), cutAfterMs); // The moment is the point: no event names it.
        databaseProxy.setAccepting(false);
        databaseProxy.reset();
        const told = toldOf(await ordered);
        databaseProxy.setAccepting(true);
        await until(
          async () =>
            (await operator.request("POST", `/v1/tunnels/${tunnel.id}`, { description: `${round}` }))
              .status === 200,
          "the database to be back",
        );
        const isMade = await wasMade(operator, told);
        seen.add(told.kind);
        if (isMade) shard = to;
        expect({ round, told, shard: (await operator.where(tunnel.id))?.shard }).toMatchObject({ shard });
        const { moves } = await operator.demand<{ moves: readonly { reason: string }[] }>(
          "GET",
          `/v1/moves?tenant=${tunnel.id}`,
        );
        expect(moves.some(({ reason }) => reason === `round ${round}`)).toBe(isMade);
      }
      expect(seen.size).toBeGreaterThan(0);
    },
    120_000,
  );
});
