import { beforeEach, describe, expect, test } from "vitest";
import { verifies } from "@moor/testkit";
import {
  callRequest,
  commandOf,
  commandsOf,
  INSTANCE_A,
  pollRequest,
  responseRequest,
} from "./support/requests.ts";
import { SimulatedCluster } from "./support/simulated-cluster.ts";

const RESULT = { resp_json: { jsonrpc: "2.0", id: 1, result: {} } };
/** Links come up, messages cross. Milliseconds. */
const SETTLE_MS = 1_000;

const nodeAt = (id: string) => ({ id, internalUrl: `tcp://${id}:1` });

describe("three nodes", () => {
  let cluster: SimulatedCluster;

  beforeEach(async () => {
    cluster = new SimulatedCluster({
      nodes: [
        { id: "a", shards: ["s1"] },
        { id: "b", shards: ["s2"] },
        { id: "c", shards: [] },
      ],
    });
    await cluster.advance(SETTLE_MS);
  });

  test("a call, its poll and its answer may each be at another node than the owner", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
    const poll = await cluster.send("b", pollRequest(tunnel, agentKey));
    await cluster.advance(100);
    const body = '{"jsonrpc":"2.0", "id":12345678901234567890,"method":"m"}';
    const call = await cluster.send("c", callRequest(tunnel, connectorKey, { body }));
    await cluster.advance(100);
    expect(poll.text).toContain(`"jsonrpc":${body}`);
    const answer = await cluster.send(
      "a",
      responseRequest(tunnel, agentKey, { command: commandOf(poll), fields: RESULT }),
    );
    await cluster.advance(100);
    expect([answer.status, call.status]).toEqual([200, 200]);
  });

  test("notifications and the final cross nodes in order, byte for byte, a large one too", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
    const poll = await cluster.send("b", pollRequest(tunnel, agentKey));
    await cluster.advance(100);
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    await cluster.advance(100);
    const command = commandOf(poll);
    const notify = `{"request_id":"${command.request_id}","resp_type":"jsonrpc_notify","resp_json":{"n":1.0}}`;
    await cluster.send("a", responseRequest(tunnel, agentKey, { command, fields: notify }));
    await cluster.advance(100);
    const large = `{"jsonrpc":"2.0","id":1,"result":"${"é".repeat(500_000)}"}`;
    const final = `{"request_id":"${command.request_id}","resp_json":${large}}`;
    await cluster.send("b", responseRequest(tunnel, agentKey, { command, fields: final }));
    await cluster.advance(5_000);
    expect(call.text).toBe(`data: {"n":1.0}\n\ndata: ${large}\n\n`);
  });

  verifies("L26", "a home's id leads to its tunnel from any node, one without a replica too", async () => {
    cluster.start({ id: "e", shards: [], isBootstrap: true });
    for (const id of ["a", "b", "c"]) {
      cluster.node(id).network.setNodes(["a", "b", "c", "e"].filter((each) => each !== id).map(nodeAt));
    }
    await cluster.advance(SETTLE_MS);
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
    const home = cluster.truth.addHome({ tunnel: tunnel.id });
    for (const entry of ["a", "c", "e"]) {
      const poll = await cluster.send("b", pollRequest(tunnel, agentKey));
      await cluster.advance(100);
      const call = await cluster.send(entry, callRequest(home, connectorKey));
      await cluster.advance(1_000);
      await cluster.send(
        "a",
        responseRequest(tunnel, agentKey, { command: commandOf(poll), fields: RESULT }),
      );
      await cluster.advance(1_000);
      expect([entry, call.status]).toEqual([entry, 200]);
    }
    const unknown = await cluster.send("e", callRequest({ id: "nobody" as typeof home.id }, connectorKey));
    await cluster.advance(1_000);
    expect([unknown.status, unknown.errorCode]).toEqual([404, "tunnel_not_found"]);
  });

  verifies("T12", "refusals come back over the link", async () => {
    const { tunnel, connectorKey } = await cluster.tunnel("s1");
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    await cluster.advance(100);
    expect([call.status, call.errorCode]).toEqual([503, "tunnel_client_not_seen"]);
  });

  test("a handed-out call survives the move and the death of its owner's node, with its own token", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
    const poll = await cluster.send("b", pollRequest(tunnel, agentKey));
    await cluster.advance(100);
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    await cluster.advance(100);
    cluster.move("b", tunnel.id, "s2");
    await cluster.advance(100);
    cluster.crash("a");
    await cluster.advance(100);
    const answer = await cluster.send(
      "b",
      responseRequest(tunnel, agentKey, { command: commandOf(poll), fields: RESULT }),
    );
    await cluster.advance(100);
    expect([answer.status, call.status]).toEqual([200, 200]);
  });

  test("a queued call of a dead owner is parked, and goes on when the owner's node is back", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1", { isSeen: true });
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    await cluster.advance(100);
    const spec = cluster.crash("a");
    const second = await cluster.send("c", callRequest(tunnel, connectorKey));
    const poll = await cluster.send("b", pollRequest(tunnel, agentKey));
    await cluster.advance(7_000);
    expect([call.status, second.status, poll.status]).toEqual([undefined, undefined, undefined]);
    cluster.start(spec);
    await cluster.advance(5_000);
    expect(commandsOf(poll)).toHaveLength(2);
  });

  test("a parked call ends as retryable at its deadline: it was certainly not handed out", async () => {
    const { tunnel, connectorKey } = await cluster.tunnel("s1", { isSeen: true });
    cluster.crash("a");
    await cluster.advance(7_000);
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    await cluster.advance(55_000);
    expect([call.status, call.errorCode, call.headers["Retry-After"]]).toEqual([
      503,
      "tunnel_transport_unavailable",
      "1",
    ]);
  });

  test("a move away from a dead owner brings parked calls and polls along", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1", { isSeen: true });
    cluster.crash("a");
    await cluster.advance(7_000);
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    const poll = await cluster.send("c", pollRequest(tunnel, agentKey));
    cluster.move("b", tunnel.id, "s2");
    await cluster.advance(100);
    expect(commandsOf(poll)).toHaveLength(1);
    expect(call.status).toBeUndefined();
  });

  test("the entry of the poll dies between claim and word: the caller is told unknown, nobody gets it again", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
    const dead = await cluster.send("b", pollRequest(tunnel, agentKey));
    await cluster.advance(100);
    const call = await cluster.send("c", callRequest(tunnel, connectorKey));
    for (let wait = 0; wait < 40 && dead.status === undefined; wait += 1) await cluster.advance(1);
    cluster.crash("b"); // Written at b; its word to a and c is on the way and lost.
    const other = await cluster.send("c", pollRequest(tunnel, agentKey));
    await cluster.advance(20_000);
    expect(other.status).toBeUndefined();
    const third = await cluster.send("c", pollRequest(tunnel, agentKey));
    await cluster.advance(40_000);
    expect([third.status, call.status]).toEqual([204, expect.any(Number)]);
    expect([502, 504]).toContain(call.status);
  });

  verifies(
    "T6",
    "an answer that arrives before a new node has met the call's entry is 503, not lost; then it is taken",
    async () => {
      const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s2");
      const poll = await cluster.send("b", pollRequest(tunnel, agentKey));
      await cluster.advance(50);
      const call = await cluster.send("c", callRequest(tunnel, connectorKey));
      await cluster.advance(50);
      cluster.start(cluster.crash("a"));
      const answer = responseRequest(tunnel, agentKey, { command: commandOf(poll), fields: RESULT });
      const early = await cluster.send("a", answer);
      expect([early.status, early.errorCode]).toEqual([503, "tunnel_transport_unavailable"]);
      await cluster.advance(3_000);
      const late = await cluster.send("a", answer);
      await cluster.advance(50);
      expect([late.status, call.status]).toEqual([200, 200]);
    },
  );

  verifies(
    "T2",
    "a key revoked while a node's feed is cut stops working there once the feed is back",
    async () => {
      const { tunnel, agentKey, agentKeyId } = await cluster.tunnel("s1");
      cluster.node("c").replica?.setCut(true);
      const waiting = await cluster.send("c", pollRequest(tunnel, agentKey));
      cluster.truth.revokeKey(agentKeyId);
      await cluster.advance(100);
      // The owner's node knows: it ends the waiting poll at the node that does not.
      expect(waiting.status).toBe(401);
      cluster.node("c").replica?.setCut(false);
      await cluster.advance(100);
      expect((await cluster.send("c", pollRequest(tunnel, agentKey))).status).toBe(401);
    },
  );

  verifies("T8", "a pinned session stays with its agent over a move", async () => {
    const { tunnel, agentKey, connectorKey } = await cluster.tunnel("s1");
    const affine = [
      "X-Tunnel-MCP-Server-Info",
      '{"version":1,"channels":[{"name":"main","proc_affinity":true}]}',
    ];
    const poll = await cluster.send("b", pollRequest(tunnel, agentKey, { headers: affine }));
    await cluster.advance(50);
    const body = '{"jsonrpc":"2.0","id":1,"method":"initialize"}';
    const opened = await cluster.send("c", callRequest(tunnel, connectorKey, { body }));
    await cluster.advance(50);
    await cluster.send(
      "b",
      responseRequest(tunnel, agentKey, { command: commandOf(poll), fields: RESULT, headers: affine }),
    );
    await cluster.advance(50);
    const [session = ""] = (opened.headers["Mcp-Session-Id"] ?? []) as string[];
    cluster.move("a", tunnel.id, "s2");
    await cluster.advance(50);
    const other = await cluster.send("a", pollRequest(tunnel, agentKey, { instance: "f".repeat(32) }));
    const own = await cluster.send("c", pollRequest(tunnel, agentKey, { instance: INSTANCE_A }));
    await cluster.advance(50);
    await cluster.send("b", callRequest(tunnel, connectorKey, { headers: ["Mcp-Session-Id", session] }));
    await cluster.advance(50);
    expect([other.status, commandsOf(own).length]).toEqual([undefined, 1]);
  });
});
