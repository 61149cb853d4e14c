import { describe, expect, test } from "vitest";
import { verifies } from "@moor/testkit";
import type { ShardId } from "../src/directory/directory.ts";
import { commandsOf, SimulatedNode } from "./support/simulated-node.ts";

describe("a tunnel that is placed elsewhere", () => {
  test("its queued calls and waiting polls follow it, in order, within their time", async () => {
    const node = new SimulatedNode({ shards: ["s1", "s2"] });
    const { tunnel, agentKey, connectorKey } = node.tunnel({ isSeen: true });
    const first = await node.call(tunnel, connectorKey, { body: '{"jsonrpc":"2.0","id":1,"method":"m"}' });
    await node.call(tunnel, connectorKey, { body: '{"jsonrpc":"2.0","id":2,"method":"m"}' });
    node.replica.move(tunnel.id, "s2");
    const poll = await node.poll(tunnel, agentKey);
    expect(commandsOf(poll).map((command) => (command.jsonrpc as { id: number }).id)).toEqual([1, 2]);
    expect(first.status).toBeUndefined();

    const waiting = await node.poll(tunnel, agentKey);
    node.replica.move(tunnel.id, "s1");
    await node.call(tunnel, connectorKey);
    expect(commandsOf(waiting)).toHaveLength(1);
  });

  verifies(
    "T12",
    "a new owner takes its agents for connected from the first call that the old one gives back",
    async () => {
      for (const [from, to] of [
        ["s1", "s2"],
        ["s2", "s1"],
      ] as const) {
        const node = new SimulatedNode({ shards: ["s1", "s2"] });
        await node.advance(60_000); // The grace of a node that just started is long over.
        const { tunnel, agentKey, connectorKey } = node.tunnel({ isSeen: true });
        node.replica.move(tunnel.id, from);
        await node.poll(tunnel, agentKey, { query: "timeout_ms=1" });
        await node.advance(1_000);
        const call = await node.call(tunnel, connectorKey);
        node.replica.move(tunnel.id, to);
        expect([to, call.status]).toEqual([to, undefined]);
        expect(commandsOf(await node.poll(tunnel, agentKey))).toHaveLength(1);
      }
    },
  );

  verifies(
    "T12",
    "a placement that is seconds old by its revision counts as new, even before its shard was told",
    async () => {
      const node = new SimulatedNode();
      await node.advance(60_000);
      const placedAgo = (agoMs: number) => ({
        shard: "s1" as ShardId,
        revision: (node.runtime.wallMs() - agoMs) * 1_000,
        tokenKey: "tk_1",
        tokenFormat: 1,
      });
      const fresh = node.tunnel({ isSeen: true, placement: placedAgo(14_000) });
      const old = node.tunnel({ isSeen: true, placement: placedAgo(15_000) });
      const waits = await node.call(fresh.tunnel, fresh.connectorKey);
      expect(waits.status).toBeUndefined();
      expect((await node.call(old.tunnel, old.connectorKey)).errorCode).toBe("tunnel_client_not_connected");
      await node.advance(15_000);
      expect(waits.errorCode).toBe("tunnel_client_not_connected");
    },
  );

  test("a handed-out call is answered after the move, with its own token", async () => {
    const node = new SimulatedNode({ shards: ["s1", "s2"] });
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const poll = await node.poll(tunnel, agentKey);
    const call = await node.call(tunnel, connectorKey);
    node.replica.move(tunnel.id, "s2");
    const [command] = commandsOf(poll);
    if (command === undefined) throw new Error("no command");
    const answer = await node.respond(tunnel, agentKey, command, {
      resp_json: { jsonrpc: "2.0", id: 1, result: {} },
    });
    expect([answer.status, call.status]).toEqual([200, 200]);
  });

  test("without its owner in reach a call is parked, then 503 with Retry-After; a poll is parked, then 204", async () => {
    const placement = { shard: "s9" as ShardId, revision: 1, tokenKey: "tk_1", tokenFormat: 1 };
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel({ placement });
    const call = await node.call(tunnel, connectorKey);
    const poll = await node.poll(tunnel, agentKey);
    await node.advance(54_999);
    expect([call.status, poll.status]).toEqual([undefined, 204]);
    await node.advance(1);
    expect([call.status, call.errorCode, call.headers["Retry-After"]]).toEqual([
      503,
      "tunnel_transport_unavailable",
      "1",
    ]);
  });
});
