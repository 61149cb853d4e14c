import { describe, expect, test } from "vitest";
import { verifies } from "@moor/testkit";
import { commandOf, commandsOf, INSTANCE_B, SimulatedNode } from "./support/simulated-node.ts";

const POLL_HOLD_MS = 25_000;

describe("metadata and health", () => {
  verifies("T1", "metadata says id, name and description to the tunnel's own agent key", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel({ name: "files", description: "of the office" });
    const answer = await node.send({
      path: `/v1/tunnels/${tunnel.id}`,
      rawHeaders: ["Authorization", `Bearer ${agentKey}`],
    });
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({ id: tunnel.id, name: "files", description: "of the office" });
  });

  verifies(
    "T1",
    "healthz and readyz say yes or no without detail, and readiness ends when the node leaves",
    async () => {
      const node = new SimulatedNode();
      expect((await node.send({ path: "/healthz" })).text).toBe('{"ok":true}');
      expect((await node.send({ path: "/readyz" })).status).toBe(200);
      node.isLeaving = true;
      expect((await node.send({ path: "/readyz" })).status).toBe(503);
      expect((await node.send({ path: "/healthz" })).status).toBe(200);
    },
  );

  verifies("T1", "a tunnel id of another shape is refused before its key is looked at", async () => {
    const node = new SimulatedNode();
    for (const id of ["tunnel_", `tunnel_${"A".repeat(32)}`, `tunnel_${"a".repeat(33)}`, "x", ""]) {
      const answer = await node.send({ path: `/v1/tunnels/${id}` });
      expect([id, answer.status, answer.errorCode]).toEqual([id, 400, "invalid_tunnel_id_format"]);
    }
    const accepted = await node.send({ path: `/v1/tunnels/tunnel_${"z".repeat(32)}` });
    expect(accepted.status).toBe(401);
  });

  verifies("T1", "no administrative route is on the public listener, and nothing answers 3xx", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel();
    const headers = ["Authorization", `Bearer ${agentKey}`];
    const statuses = await Promise.all(
      [
        { method: "GET", path: "/v1/tunnels" },
        { method: "POST", path: "/v1/tunnels" },
        { method: "POST", path: `/v1/tunnels/${tunnel.id}` },
        { method: "DELETE", path: `/v1/tunnels/${tunnel.id}` },
        { method: "GET", path: "/metrics" },
        { method: "GET", path: `/v1/tunnels/${tunnel.id}/` },
        { method: "GET", path: "//v1/tunnels" },
      ].map(async (request) => (await node.send({ ...request, rawHeaders: headers })).status),
    );
    expect(statuses).toEqual([404, 404, 405, 405, 404, 404, 404]);
  });
});

describe("agent keys", () => {
  verifies(
    ["T2", "T3"],
    "a missing, foreign-kind or revoked key is 401, a key of another tunnel 403",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, agentKeyId, connectorKey } = node.tunnel();
      const other = node.tunnel();
      const status = async (key: string | undefined) =>
        (
          await node.send({
            path: `/v1/tunnels/${tunnel.id}`,
            rawHeaders: key === undefined ? [] : ["Authorization", `Bearer ${key}`],
          })
        ).status;
      expect(await status(undefined)).toBe(401);
      expect(await status(connectorKey)).toBe(401);
      for (const kind of ["operator", "box", "app", "extension"] as const) {
        expect([kind, await status(node.key(kind, tunnel).text)]).toEqual([kind, 401]);
      }
      expect(await status(other.agentKey)).toBe(403);
      expect(await status(`${agentKey.slice(0, -1)}${agentKey.endsWith("A") ? "B" : "A"}`)).toBe(401);
      expect(await status(agentKey)).toBe(200);
      node.replica.revokeKey(agentKeyId);
      expect(await status(agentKey)).toBe(401);
    },
  );

  verifies(
    "T2",
    "several keys of a tunnel work side by side, and revoking one ends its waiting polls only",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, agentKeyId } = node.tunnel();
      const second = node.key("agent", tunnel);
      const first = await node.poll(tunnel, agentKey);
      const other = await node.poll(tunnel, second.text, { instance: INSTANCE_B });
      node.replica.revokeKey(agentKeyId);
      expect([first.status, first.errorCode]).toEqual([401, "unauthorized"]);
      expect(other.status).toBeUndefined();
    },
  );

  verifies("T3", "an unknown tunnel is 401 on agent routes and 404 on the connector", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    node.replica.deleteTunnel(tunnel.id);
    expect((await node.poll(tunnel, agentKey)).status).toBe(401);
    const call = await node.call(tunnel, connectorKey);
    expect([call.status, call.errorCode]).toEqual([404, "tunnel_not_found"]);
  });
});

describe("poll", () => {
  verifies(
    "T4",
    "a poll is held until its own bound and then answered 204 without a body, no-store",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey } = node.tunnel();
      const short = await node.poll(tunnel, agentKey, { query: "timeout_ms=1000" });
      const long = await node.poll(tunnel, agentKey, { query: "timeout_ms=999999999" });
      const absent = await node.poll(tunnel, agentKey);
      await node.advance(999);
      expect(short.status).toBeUndefined();
      await node.advance(1);
      expect([short.status, short.text, short.headers["Cache-Control"]]).toEqual([204, "", "no-store"]);
      await node.advance(POLL_HOLD_MS - 1_001);
      expect([long.status, absent.status]).toEqual([undefined, undefined]);
      await node.advance(1);
      expect([long.status, absent.status]).toEqual([204, 204]);
      expect((await node.poll(tunnel, agentKey, { query: "timeout_ms=-1" })).status).toBe(204);
    },
  );

  verifies(
    "T4",
    "limit is clamped to 1–25 and decides how many queued commands one answer carries",
    async () => {
      for (const [query, count] of [
        ["", 25],
        ["limit=0", 1],
        ["limit=-7", 1],
        ["limit=3", 3],
        ["limit=26", 25],
      ] as const) {
        const node = new SimulatedNode();
        const { tunnel, agentKey, connectorKey } = node.tunnel();
        await node.poll(tunnel, agentKey, { query: "timeout_ms=0" });
        await node.advance(1);
        for (let call = 0; call < 30; call += 1) await node.call(tunnel, connectorKey);
        const poll = await node.poll(tunnel, agentKey, { query });
        expect([query, commandsOf(poll).length]).toEqual([query, count]);
      }
    },
  );

  verifies("T4", "a query that is no integer or no channel name is 400 and says which", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel();
    for (const [query, code] of [
      ["limit=x", "invalid_request"],
      ["limit=", "invalid_request"],
      ["limit=1.5", "invalid_request"],
      ["timeout_ms=1e3", "invalid_request"],
      ["channel=Main", "invalid_channel_format"],
      [`channel=${"a".repeat(65)}`, "invalid_channel_format"],
      ["channel=", "invalid_channel_format"],
    ] as const) {
      const poll = await node.poll(tunnel, agentKey, { query });
      expect([query, poll.status, poll.errorCode]).toEqual([query, 400, code]);
    }
    expect(
      (await node.poll(tunnel, agentKey, { query: `channel=${"a".repeat(64)}` })).status,
    ).toBeUndefined();
  });

  verifies("T4", "a poll with channels gets only theirs; one without gets every channel's", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const files = await node.poll(tunnel, agentKey, { query: "channel=files&channel=mail" });
    await node.call(tunnel, connectorKey);
    expect(files.status).toBeUndefined();
    await node.call(tunnel, connectorKey, { channel: "mail" });
    expect(commandOf(files).channel).toBe("mail");
    const every = await node.poll(tunnel, agentKey);
    expect(commandOf(every).channel).toBe("main");
  });

  verifies(
    "T4",
    "several polls wait on one tunnel and each command goes to exactly one, oldest poll first",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      const first = await node.poll(tunnel, agentKey);
      const second = await node.poll(tunnel, agentKey, { instance: INSTANCE_B });
      await node.call(tunnel, connectorKey, { body: '{"jsonrpc":"2.0","id":1,"method":"a"}' });
      expect([first.status, second.status]).toEqual([200, undefined]);
      await node.call(tunnel, connectorKey, { body: '{"jsonrpc":"2.0","id":2,"method":"b"}' });
      expect(commandOf(first).request_id).not.toBe(commandOf(second).request_id);
    },
  );

  verifies(
    "T4",
    "a poller that left before its answer loses nothing; once written, a command is never given again",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      const gone = await node.poll(tunnel, agentKey);
      gone.leave();
      await node.call(tunnel, connectorKey);
      const silentlyGone = await node.poll(tunnel, agentKey, { query: "channel=other" });
      silentlyGone.isGone = true;
      const taken = await node.poll(tunnel, agentKey, { instance: INSTANCE_B });
      expect(commandsOf(taken)).toHaveLength(1);
      taken.leave();
      const later = await node.poll(tunnel, agentKey);
      expect(later.status).toBeUndefined();
    },
  );

  verifies(
    "T4",
    "a hand-out to a socket that died unseen returns to the head of the queue, in order",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      const dead = await node.poll(tunnel, agentKey);
      dead.isGone = true; // Its close event has not been heard yet.
      await node.call(tunnel, connectorKey, { body: '{"jsonrpc":"2.0","id":1,"method":"first"}' });
      await node.call(tunnel, connectorKey, { body: '{"jsonrpc":"2.0","id":2,"method":"second"}' });
      const alive = await node.poll(tunnel, agentKey, { instance: INSTANCE_B });
      expect(commandsOf(alive).map((command) => (command.jsonrpc as { method: string }).method)).toEqual([
        "first",
        "second",
      ]);
    },
  );

  verifies("T5", "a command carries its fields, and the caller's message byte for byte", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const body =
      '{ "id" : 12345678901234567890, "jsonrpc":"2.0","method":"tools/call","params":{"b":1.0,"a":"\\u00e9","é":-0}}';
    const poll = await node.poll(tunnel, agentKey);
    await node.call(tunnel, connectorKey, {
      body,
      headers: ["Mcp-Session-Id", "s-1", "MCP-Protocol-Version", "2025-11-25", "X-Many", "1", "x-many", "2"],
    });
    const command = commandOf(poll);
    expect(command).toMatchObject({
      command_type: "jsonrpc",
      channel: "main",
      created_at: "2026-01-01T00:00:00.000Z",
      response_timeout: "55s",
    });
    expect(command.request_id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(command.headers).toMatchObject({
      "Mcp-Session-Id": ["s-1"],
      "MCP-Protocol-Version": ["2025-11-25"],
      Accept: ["application/json, text/event-stream"],
      "X-Many": ["1", "2"],
    });
    expect(poll.text).toContain(`"jsonrpc":${body}}`);
  });

  verifies(["T5", "T7"], "response_timeout is the time left at hand-out, queueing taken off", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel({ deadlineMs: 30_000 });
    await node.poll(tunnel, agentKey, { query: "timeout_ms=0" });
    await node.advance(1);
    await node.call(tunnel, connectorKey);
    await node.advance(4_500);
    expect(commandOf(await node.poll(tunnel, agentKey)).response_timeout).toBe("25500ms");
  });

  test("a tunnel's first poll is noted once", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel();
    await node.poll(tunnel, agentKey);
    await node.poll(tunnel, agentKey);
    expect(node.seen).toEqual([tunnel.id]);
  });

  test("a leaving node lets waiting polls go with 204 and refuses new ones with Retry-After", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel();
    const waiting = await node.poll(tunnel, agentKey);
    node.isLeaving = true;
    await node.entry.drain(0);
    expect(waiting.status).toBe(204);
    const refused = await node.poll(tunnel, agentKey);
    expect([refused.status, refused.errorCode, refused.headers["Retry-After"]]).toEqual([
      503,
      "node_draining",
      "1",
    ]);
  });

  test("a leaving node hands out what is queued: no call is lost for want of a poll", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const busy = await node.poll(tunnel, agentKey);
    await node.call(tunnel, connectorKey);
    const queued = await node.call(tunnel, connectorKey);
    node.isLeaving = true;
    const drained = node.entry.drain(10_000);
    const last = await node.poll(tunnel, agentKey);
    for (const command of [commandOf(busy), commandOf(last)]) {
      await node.respond(tunnel, agentKey, command, { resp_json: { jsonrpc: "2.0", id: 1, result: {} } });
    }
    await drained;
    expect(queued.status).toBe(200);
  });

  test("polls beyond the bound of one tunnel are told to wait", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel();
    for (let poll = 0; poll < 1_000; poll += 1) await node.poll(tunnel, agentKey);
    const refused = await node.poll(tunnel, agentKey);
    expect([refused.status, refused.errorCode]).toEqual([429, "rate_limit_exceeded"]);
  });
});
