// Calls and polls that are on their way to a shard while their tunnel leaves it: messages cross on the wire.

import { describe, expect, test } from "vitest";
import { callRequest, commandsOf, pollRequest } from "./support/requests.ts";
import { SimulatedCluster } from "./support/simulated-cluster.ts";

const ROUNDS = 60;
/** Far below any time-out of calls, polls or claims: what waited for one of those took longer. Milliseconds. */
const SOON_MS = 200;

describe("an entry apart from both owners", () => {
  for (const isBootstrap of [false, true]) {
    const kind = isBootstrap ? "bootstrap" : "replica";

    test(`${kind}: a call that crosses a move is handed out at once, wherever its poll was`, async () => {
      const cluster = await startCluster(isBootstrap);
      const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
      for (let round = 0; round < ROUNDS; round += 1) {
        const poll = await cluster.send("c", pollRequest(tunnel, agentKey));
        if (round % 2 === 0) await cluster.advance(SOON_MS);
        await cluster.send("c", callRequest(tunnel, connectorKey));
        await cluster.advance(round % 5);
        cluster.move("a", tunnel.id, round % 2 === 0 ? "s2" : "s1");
        await cluster.advance(SOON_MS);
        expect({ round, status: poll.status }).toEqual({ round, status: 200 });
        expect(commandsOf(poll)).toHaveLength(1);
      }
    });
  }
});

async function startCluster(isBootstrap: boolean): Promise<SimulatedCluster> {
  const cluster = new SimulatedCluster({
    nodes: [
      { id: "a", shards: ["s1", "s2"] },
      { id: "c", shards: [], isBootstrap },
    ],
  });
  await cluster.advance(1_000);
  return cluster;
}
