import { describe, expect, test } from "vitest";
import type { InstanceId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import type { CallId } from "../src/peer/peer-link.ts";
import { Presence } from "../src/shard/mailbox/presence.ts";
import { commandOf, commandsOf, INSTANCE_A, INSTANCE_B, SimulatedNode } from "./support/simulated-node.ts";

const RESULT = { jsonrpc: "2.0", id: 1, result: {} };
const NOT_CONNECTED = [503, "tunnel_client_not_connected", "1"];

describe("connected", () => {
  const outcome = (exchange: Awaited<ReturnType<SimulatedNode["call"]>>) => [
    exchange.status,
    exchange.errorCode,
    exchange.headers["Retry-After"],
  ];

  verifies("T12", "a tunnel no agent ever polled is tunnel_client_not_seen at once", async () => {
    const node = new SimulatedNode();
    const { tunnel, connectorKey } = node.tunnel();
    expect(outcome(await node.call(tunnel, connectorKey))).toEqual([503, "tunnel_client_not_seen", "1"]);
  });

  verifies("T12", "connected until 20 s after the last poll ended, not a millisecond longer", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    await node.poll(tunnel, agentKey, { query: "timeout_ms=1000" });
    await node.advance(1_000 + 19_999);
    const taken = await node.call(tunnel, connectorKey);
    expect(taken.status).toBeUndefined();
    await node.advance(1);
    expect(outcome(taken)).toEqual(NOT_CONNECTED);
    expect(outcome(await node.call(tunnel, connectorKey))).toEqual(NOT_CONNECTED);
  });

  verifies("T12", "an open poll keeps the tunnel connected for as long as it is held", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    await node.poll(tunnel, agentKey, { query: "channel=other" });
    await node.advance(24_999);
    expect((await node.call(tunnel, connectorKey)).status).toBeUndefined();
  });

  verifies("T12", "a response or notification counts for 20 s", async () => {
    for (const type of ["jsonrpc_response", "jsonrpc_notify"]) {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel({ deadlineMs: 1_000 });
      const poll = await node.poll(tunnel, agentKey);
      await node.call(tunnel, connectorKey);
      await node.advance(10_000); // The command is past its deadline; only the answer can count now.
      await node.respond(tunnel, agentKey, commandOf(poll), { resp_type: type, resp_json: RESULT });
      await node.advance(19_999);
      const before = await node.call(tunnel, connectorKey);
      expect([type, before.status]).toEqual([type, undefined]);
      await node.advance(1);
      expect(outcome(before)).toEqual(NOT_CONNECTED);
    }
  });

  verifies(
    "T12",
    "a handed-out command counts until its deadline, however long ago the last poll was",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel({ deadlineMs: 300_000 });
      await node.poll(tunnel, agentKey);
      await node.call(tunnel, connectorKey);
      await node.advance(299_999);
      const last = await node.call(tunnel, connectorKey);
      expect(last.status).toBeUndefined();
      await node.advance(1);
      expect(outcome(last)).toEqual(NOT_CONNECTED);
    },
  );

  verifies("T12", "an agent that was told to wait counts until that wait and 5 s are over", async () => {
    const node = new SimulatedNode();
    const { tunnel, connectorKey } = node.tunnel();
    const shard = node.shards.get("s1");
    shard?.noteToldToWait(tunnel.id, INSTANCE_B as Parameters<typeof shard.noteToldToWait>[1], 30_000);
    await node.advance(34_999);
    const last = await node.call(tunnel, connectorKey);
    expect(last.status).toBeUndefined();
    await node.advance(1);
    expect(outcome(last)).toEqual(NOT_CONNECTED);
  });

  verifies("T12", "a new owner takes a tunnel that was seen before for connected for 15 s", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel({ isSeen: true });
    const early = await node.call(tunnel, connectorKey);
    expect(early.status).toBeUndefined();
    await node.advance(14_000);
    const poll = await node.poll(tunnel, agentKey);
    await node.respond(tunnel, agentKey, commandOf(poll), { resp_json: RESULT });
    expect(early.status).toBe(200);

    const silent = node.tunnel({ isSeen: true });
    const late = await node.call(silent.tunnel, silent.connectorKey);
    await node.advance(999);
    expect(late.status).toBeUndefined();
    await node.advance(1);
    expect(outcome(late)).toEqual(NOT_CONNECTED);
  });

  verifies(
    "T12",
    "the queue holds 1,000 calls of a tunnel and the next is 429 tunnel_queue_full",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      await node.poll(tunnel, agentKey, { query: "channel=other" });
      for (let call = 0; call < 1_000; call += 1) await node.call(tunnel, connectorKey);
      expect(outcome(await node.call(tunnel, connectorKey))).toEqual([429, "tunnel_queue_full", "1"]);
      const poll = await node.poll(tunnel, agentKey, { query: "limit=1" });
      expect(poll.status).toBe(200);
      expect((await node.call(tunnel, connectorKey)).status).toBeUndefined();
    },
  );

  test("what agents that are gone have left behind is forgotten, also while another one polls", () => {
    const presence = new Presence(Number.NEGATIVE_INFINITY);
    const [first, second] = [INSTANCE_A as InstanceId, INSTANCE_B as InstanceId];
    presence.pollOpened(first);
    presence.active(second, 0);
    presence.commandStarted(second, "req_1" as CallId, 60_000);
    presence.dropLapsed(59_999);
    expect(presence.size).toBe(2);
    presence.dropLapsed(60_000);
    expect(presence.size).toBe(1);
    expect(presence.instanceConnectedUntil(first, 60_000)).toBe(Number.POSITIVE_INFINITY);
  });

  verifies("T4", "one answer carries 8 MiB of commands, or a single larger one", async () => {
    const node = new SimulatedNode({ bodyBytesMax: 1024 ** 3 });
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    await node.poll(tunnel, agentKey, { query: "channel=other" });
    const request = '{"jsonrpc":"2.0","id":1,"method":"m"}';
    const padded = (byteCount: number) => request + " ".repeat(byteCount - request.length);
    for (const mebibytes of [4, 4, 4]) {
      await node.call(tunnel, connectorKey, { body: padded(mebibytes * 1024 * 1024) });
    }
    expect(commandsOf(await node.poll(tunnel, agentKey))).toHaveLength(2);
    expect(commandsOf(await node.poll(tunnel, agentKey))).toHaveLength(1);
  });

  verifies("T12", "the queue holds 32 MiB of a tunnel's calls and no byte more", async () => {
    const node = new SimulatedNode({ bodyBytesMax: 1024 ** 3 });
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    await node.poll(tunnel, agentKey, { query: "channel=other" });
    const request = '{"jsonrpc":"2.0","id":1,"method":"m"}';
    const body = request + " ".repeat(4 * 1024 * 1024 - request.length);
    for (let call = 0; call < 8; call += 1) await node.call(tunnel, connectorKey, { body });
    expect((await node.call(tunnel, connectorKey)).errorCode).toBe("tunnel_queue_full");
  });
});
