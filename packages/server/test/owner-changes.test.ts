import { describe, expect, test } from "vitest";
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

  test("a shard that cannot be reached is 503 with Retry-After: the call was not handed out", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel({
      placement: { shard: "s9" as ShardId, revision: 1 },
    });
    const call = await node.call(tunnel, connectorKey);
    expect([call.status, call.errorCode, call.headers["Retry-After"]]).toEqual([
      503,
      "tunnel_transport_unavailable",
      "1",
    ]);
    expect((await node.poll(tunnel, agentKey)).errorCode).toBe("tunnel_transport_unavailable");
  });
});
