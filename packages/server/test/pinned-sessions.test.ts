import { beforeEach, describe, expect } from "vitest";
import { verifies } from "@moor/testkit";
import type { TunnelRecord } from "../src/directory/directory.ts";
import type { FakeExchange } from "./support/fake-exchange.ts";
import { commandOf, commandsOf, INSTANCE_A, INSTANCE_B, SimulatedNode } from "./support/simulated-node.ts";

const INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}';
const RESULT = { jsonrpc: "2.0", id: 1, result: {} };
const AFFINE = [
  "X-Tunnel-MCP-Server-Info",
  '{"version":1,"channels":[{"name":"main","proc_affinity":true}]}',
];
const PLAIN = ["X-Tunnel-MCP-Server-Info", '{"version":1,"channels":[{"name":"main"}]}'];

describe("proc_affinity", () => {
  let node: SimulatedNode;
  let tunnel: TunnelRecord;
  let agentKey: string;
  let connectorKey: string;

  beforeEach(() => {
    node = new SimulatedNode();
    ({ tunnel, agentKey, connectorKey } = node.tunnel());
  });

  /** An initialize answered by instance A; returns the caller's session id, if any. */
  async function initialize(headers: readonly string[], sessionId?: string, json: object = RESULT) {
    const poll = await node.poll(tunnel, agentKey, { instance: INSTANCE_A, headers });
    const call = await node.call(tunnel, connectorKey, { body: INITIALIZE });
    const respHeaders = sessionId === undefined ? {} : { "Mcp-Session-Id": [sessionId] };
    await node.respond(
      tunnel,
      agentKey,
      commandOf(poll),
      { resp_json: json, resp_headers: respHeaders },
      { instance: INSTANCE_A, headers },
    );
    const [given] = (call.headers["Mcp-Session-Id"] ?? []) as string[];
    return given;
  }

  const callInSession = (sessionId: string): Promise<FakeExchange> =>
    node.call(tunnel, connectorKey, { headers: ["Mcp-Session-Id", sessionId] });

  verifies("T8", "a session goes only to the instance that answered its initialize", async () => {
    const session = (await initialize(AFFINE, "target-session")) ?? "";
    expect(session).not.toContain("target-session");
    const other = await node.poll(tunnel, agentKey, { instance: INSTANCE_B });
    await callInSession(session);
    expect(other.status).toBeUndefined();
    const own = await node.poll(tunnel, agentKey, { instance: INSTANCE_A });
    expect(commandOf(own).headers["Mcp-Session-Id"]).toEqual(["target-session"]);
  });

  verifies(
    "T8",
    "where the target gives no session id one is minted, and stripped on the way to it",
    async () => {
      const session = (await initialize(AFFINE)) ?? "";
      expect(session).not.toBe("");
      await callInSession(session);
      const own = await node.poll(tunnel, agentKey, { instance: INSTANCE_A });
      expect(Object.keys(commandOf(own).headers)).not.toContain("Mcp-Session-Id");
    },
  );

  verifies(
    "T8",
    "a session whose instance is gone is 404, at once or when it lapses, and never sent to another",
    async () => {
      const session = (await initialize(AFFINE, "target-session")) ?? "";
      const other = await node.poll(tunnel, agentKey, { instance: INSTANCE_B });
      const queued = await callInSession(session);
      await node.advance(20_000);
      expect([queued.status, queued.errorCode]).toEqual([404, "session_not_found"]);
      const again = await callInSession(session);
      expect([again.status, again.errorCode]).toEqual([404, "session_not_found"]);
      expect(other.status).toBeUndefined();
    },
  );

  verifies(
    "T8",
    "without proc_affinity, with a malformed declaration, or for a failed initialize nothing is sealed",
    async () => {
      const malformed = ["X-Tunnel-MCP-Server-Info", '{"version":1,"channels":"main"}'];
      expect(await initialize(PLAIN, "target-session")).toBe("target-session");
      expect(await initialize(malformed, "target-session")).toBe("target-session");
      expect(await initialize([], "target-session")).toBe("target-session");
      const failed = { jsonrpc: "2.0", id: 1, error: { code: -32602, message: "no" } };
      expect(await initialize(AFFINE, undefined, failed)).toBeUndefined();
      const anyAgent = await node.poll(tunnel, agentKey, { instance: INSTANCE_B });
      await callInSession("target-session");
      expect(commandsOf(anyAgent)).toHaveLength(1);
    },
  );

  verifies(
    "T8",
    "a sealed session id of another tunnel or channel, or a tampered one, is 404 and goes to nobody",
    async () => {
      const session = (await initialize(AFFINE, "target-session")) ?? "";
      const other = node.tunnel();
      for (const [place, id] of [
        [{ tunnel: other.tunnel, key: other.connectorKey, agent: other.agentKey, channel: "main" }, session],
        [{ tunnel, key: connectorKey, agent: agentKey, channel: "files" }, session],
        [{ tunnel, key: connectorKey, agent: agentKey, channel: "main" }, `${session.slice(0, -2)}AA`],
      ] as const) {
        const poll = await node.poll(place.tunnel, place.agent, { instance: INSTANCE_B });
        const options = { channel: place.channel, headers: ["Mcp-Session-Id", id] };
        const call = await node.call(place.tunnel, place.key, options);
        expect([call.status, call.errorCode, poll.status]).toEqual([404, "session_not_found", undefined]);
      }
    },
  );

  verifies("T8", "DELETE of a pinned session goes to its instance with the target's own id", async () => {
    const session = (await initialize(AFFINE, "target-session")) ?? "";
    await node.call(tunnel, connectorKey, { method: "DELETE", headers: ["Mcp-Session-Id", session] });
    const own = await node.poll(tunnel, agentKey, { instance: INSTANCE_A });
    expect(commandOf(own)).toMatchObject({
      command_type: "session_termination",
      headers: { "Mcp-Session-Id": ["target-session"] },
    });
  });
});
