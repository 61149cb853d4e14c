import { describe, expect, test } from "vitest";
import { CALL_BODY_BYTES_MAX } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { commandOf, SimulatedNode } from "./support/simulated-node.ts";

const REQUEST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const nested = (levels: number) =>
  `{"jsonrpc":"2.0","id":1,"method":"m","params":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;

describe("homes", () => {
  verifies("L26", "a home's id leads to its own tunnel, with that tunnel's key and channels", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const home = node.replica.addHome({ tunnel: tunnel.id });
    const poll = await node.poll(tunnel, agentKey);
    await node.call(home, connectorKey, { channel: "files" });
    expect(commandOf(poll)).toMatchObject({ channel: "files", jsonrpc: { method: "tools/list" } });
    const other = node.tunnel();
    const foreign = await node.call(home, other.connectorKey);
    expect([foreign.status, foreign.errorCode]).toEqual([403, "forbidden"]);
    const keyless = await node.call(home, undefined);
    expect([keyless.status, keyless.errorCode]).toEqual([401, "unauthorized"]);
  });

  verifies("L26", "an unknown home, and one without a tunnel, are as an unknown tunnel", async () => {
    const node = new SimulatedNode();
    const { tunnel, connectorKey } = node.tunnel();
    node.replica.deleteTunnel(tunnel.id);
    const bare = node.replica.addHome();
    const unknown = await node.call(tunnel, connectorKey);
    const asked = { headers: ["X-Request-Id", "same"] };
    for (const id of ["nobody", bare.id]) {
      const answer = await node.call({ id: id as typeof bare.id }, connectorKey, asked);
      expect([answer.status, answer.text]).toEqual([404, unknown.text]);
    }
    for (const id of ["No-Home", "tunnel_short", "%41", ""]) {
      const answer = await node.call({ id: id as typeof bare.id }, connectorKey);
      expect([answer.status, answer.errorCode]).toEqual([400, "invalid_tunnel_id_format"]);
    }
  });

  test("an agent cannot poll by a home's id", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel();
    const home = node.replica.addHome({ tunnel: tunnel.id });
    const poll = await node.poll({ ...tunnel, id: home.id as never }, agentKey);
    expect([poll.status, poll.errorCode]).toEqual([400, "invalid_tunnel_id_format"]);
  });
});

describe("messages", () => {
  verifies("T9", "a request becomes a command of the path's channel, main by default", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const first = await node.poll(tunnel, agentKey);
    await node.call(tunnel, connectorKey);
    expect([commandOf(first).channel, commandOf(first).command_type]).toEqual(["main", "jsonrpc"]);
    const second = await node.poll(tunnel, agentKey);
    await node.call(tunnel, connectorKey, { channel: "files" });
    expect(commandOf(second).channel).toBe("files");
    const bad = await node.call(tunnel, connectorKey, { channel: "Files" });
    expect([bad.status, bad.errorCode]).toEqual([400, "invalid_channel_format"]);
  });

  verifies(
    "T9",
    "notifications and responses are 202 after notify_ack, and an ack's error status passes",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      for (const [body, code, status] of [
        ['{"jsonrpc":"2.0","method":"notifications/initialized"}', 202, 202],
        ['{"jsonrpc":"2.0","id":7,"result":{}}', 200, 202],
        ['{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}', undefined, 202],
        ['{"jsonrpc":"2.0","method":"notifications/x"}', 401, 401],
      ] as const) {
        const poll = await node.poll(tunnel, agentKey);
        const call = await node.call(tunnel, connectorKey, { body });
        expect(call.status).toBeUndefined();
        await node.respond(tunnel, agentKey, commandOf(poll), { resp_type: "notify_ack", resp_code: code });
        expect([body, call.status, call.text]).toEqual([body, status, ""]);
      }
    },
  );

  verifies("T9", "what is no single JSON-RPC message is 400 and never reaches an agent", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const poll = await node.poll(tunnel, agentKey);
    for (const body of [
      "",
      "[]",
      `[${REQUEST}]`,
      "{}",
      '"text"',
      '{"jsonrpc":"2.0","id":1}',
      '{"jsonrpc":"1.0","id":1,"method":"m"}',
      '{"id":1,"method":"m"}',
      '{"jsonrpc":"2.0","id":null,"method":"m"}',
      '{"jsonrpc":"2.0","id":{},"method":"m"}',
      '{"jsonrpc":"2.0","id":1,"method":5}',
      '{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}',
      '{"jsonrpc":"2.0","id":1,"method":"a","\\u006dethod":"b"}',
      `${REQUEST}x`,
      `\ufeff${REQUEST}`,
      nested(1_001),
    ]) {
      const call = await node.call(tunnel, connectorKey, { body });
      expect([body.slice(0, 40), call.status, call.errorCode]).toEqual([
        body.slice(0, 40),
        400,
        "invalid_json_payload",
      ]);
    }
    expect(poll.status).toBeUndefined();
    await node.call(tunnel, connectorKey, { body: nested(1_000) });
    expect(poll.status).toBe(200);
  });

  verifies("T9", "4 MiB are taken and one byte more is 413", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const poll = await node.poll(tunnel, agentKey);
    const padded = (byteCount: number) => REQUEST + " ".repeat(byteCount - REQUEST.length);
    const over = await node.call(tunnel, connectorKey, { body: padded(CALL_BODY_BYTES_MAX + 1) });
    expect([over.status, over.errorCode]).toEqual([413, "request_body_too_large"]);
    await node.call(tunnel, connectorKey, { body: padded(CALL_BODY_BYTES_MAX) });
    expect(poll.status).toBe(200);
  });

  verifies(
    "T9",
    "the media type is judged: JSON with parameters passes, another or none is 415",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      await node.poll(tunnel, agentKey);
      const status = async (type: string | undefined) => {
        const rawHeaders = ["Authorization", `Bearer ${connectorKey}`];
        if (type !== undefined) rawHeaders.push("Content-Type", type);
        return (await node.send({ method: "POST", path: `/v1/mcp/${tunnel.id}`, rawHeaders, body: REQUEST }))
          .status;
      };
      expect(await status(undefined)).toBe(415);
      expect(await status("text/plain")).toBe(415);
      expect(await status("application/jsonx")).toBe(415);
      expect(await status("Application/JSON; charset=utf-8")).toBeUndefined();
    },
  );

  verifies("T9", "GET and other methods are 405 with Allow, for a tunnel that exists never 404", async () => {
    const node = new SimulatedNode();
    const { tunnel, connectorKey } = node.tunnel();
    for (const method of ["GET", "PUT", "HEAD", "OPTIONS"]) {
      const call = await node.call(tunnel, connectorKey, { method });
      expect([call.status, call.headers["Allow"]]).toEqual([405, "POST, DELETE"]);
    }
  });

  verifies(
    "T9",
    "DELETE ends a session through a session_termination command; without a session id it is 400",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      const poll = await node.poll(tunnel, agentKey);
      const none = await node.call(tunnel, connectorKey, { method: "DELETE" });
      expect([none.status, none.errorCode]).toEqual([400, "missing_mcp_session_id"]);
      const call = await node.call(tunnel, connectorKey, {
        method: "DELETE",
        headers: ["Mcp-Session-Id", "s-1"],
      });
      const command = commandOf(poll);
      expect(command.command_type).toBe("session_termination");
      expect(command.headers["Mcp-Session-Id"]).toEqual(["s-1"]);
      expect("jsonrpc" in command).toBe(false);
      const type = "session_termination_response";
      await node.respond(tunnel, agentKey, command, { resp_type: type, resp_code: 204 });
      expect([call.status, call.text]).toEqual([204, ""]);
    },
  );

  verifies("T9", "CORS headers and preflights are answered for configured origins only", async () => {
    const node = new SimulatedNode({ settings: { corsOrigins: ["https://app.example"] } });
    const { tunnel } = node.tunnel();
    const preflight = (origin: string) =>
      node.send({ method: "OPTIONS", path: `/v1/mcp/${tunnel.id}`, rawHeaders: ["Origin", origin] });
    const allowed = await preflight("https://app.example");
    expect([allowed.status, allowed.headers["Access-Control-Allow-Origin"]]).toEqual([
      204,
      "https://app.example",
    ]);
    expect((await preflight("https://evil.example")).status).toBe(405);
    const call = await node.call(tunnel, undefined, { headers: ["Origin", "https://app.example"] });
    expect([call.status, call.headers["Access-Control-Allow-Origin"]]).toEqual([401, "https://app.example"]);
  });

  verifies(
    "T15",
    "methods of every protocol revision pass verbatim, unknown and stateless ones included",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      for (const method of [
        "initialize",
        "server/discover",
        "subscriptions/listen",
        "tasks/get",
        "x/unknown",
      ]) {
        const poll = await node.poll(tunnel, agentKey);
        const body = `{"jsonrpc":"2.0","id":"a","method":"${method}","params":{"_meta":{"x/y":1.0}}}`;
        await node.call(tunnel, connectorKey, { body, headers: ["Mcp-Method", method, "Mcp-Name", "n"] });
        expect(poll.text).toContain(`"jsonrpc":${body}`);
        expect(commandOf(poll).headers).toMatchObject({ "Mcp-Method": [method], "Mcp-Name": ["n"] });
      }
    },
  );

  test("a body beyond the node's budget is 503 with Retry-After before it is read", async () => {
    const node = new SimulatedNode({ bodyBytesMax: 10 });
    const { tunnel, connectorKey } = node.tunnel();
    const call = await node.call(tunnel, connectorKey, { headers: ["Content-Length", "11"] });
    expect([call.status, call.errorCode, call.headers["Retry-After"]]).toEqual([503, "overloaded", "1"]);
    const unsized = await node.call(tunnel, connectorKey, { headers: ["Transfer-Encoding", "chunked"] });
    expect(unsized.errorCode).toBe("overloaded");
  });
});

describe("access modes", () => {
  verifies(
    ["T2", "T10"],
    "key: only a connector key of this tunnel calls, and it is not forwarded",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      const other = node.tunnel();
      const poll = await node.poll(tunnel, agentKey);
      for (const [key, status] of [
        [undefined, 401],
        [agentKey, 401],
        [other.connectorKey, 403],
      ] as const) {
        expect((await node.call(tunnel, key)).status).toBe(status);
      }
      await node.call(tunnel, connectorKey);
      expect(poll.text).not.toContain(connectorKey);
      expect(commandOf(poll).headers).not.toHaveProperty("Authorization");
    },
  );

  verifies(
    "T10",
    "passthrough: the caller's Authorization goes to the MCP server, which judges it",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey } = node.tunnel({ access: "passthrough" });
      const poll = await node.poll(tunnel, agentKey);
      const call = await node.call(tunnel, "the-servers-own-token");
      const command = commandOf(poll);
      expect(command.headers["Authorization"]).toEqual(["Bearer the-servers-own-token"]);
      await node.respond(tunnel, agentKey, command, {
        resp_code: 401,
        resp_headers: { "WWW-Authenticate": ['Bearer realm="m"'] },
        resp_json: { jsonrpc: "2.0", id: 1, error: { code: -32001, message: "no" } },
      });
      expect([call.status, call.headers["WWW-Authenticate"]]).toEqual([401, ['Bearer realm="m"']]);
    },
  );

  verifies("T10", "open: loopback listener, Host and Origin only, unless forced", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey } = node.tunnel({ access: "open" });
    await node.poll(tunnel, agentKey);
    const status = async (headers: readonly string[], isLoopbackListener = true) =>
      (await node.call(tunnel, undefined, { headers, isLoopbackListener })).errorCode;
    expect(await status(["Host", "127.0.0.1:8080"], false)).toBe("host_not_allowed");
    expect(await status(["Host", "evil.example"])).toBe("host_not_allowed");
    expect(await status([])).toBe("host_not_allowed");
    expect(await status(["Host", "localhost.evil.example"])).toBe("host_not_allowed");
    expect(await status(["Host", "localhost:8080", "Origin", "https://evil.example"])).toBe(
      "host_not_allowed",
    );
    expect(await status(["Host", "localhost:8080", "Origin", "null"])).toBe("host_not_allowed");
    expect(await status(["Host", "[::1]:8080", "Origin", "http://localhost:3000"])).toBeUndefined();
    const forced = new SimulatedNode({ settings: { isOpenAccessForced: true } });
    const open = forced.tunnel({ access: "open" });
    await forced.poll(open.tunnel, open.agentKey);
    const call = await forced.call(open.tunnel, undefined, { isLoopbackListener: false });
    expect(call.status).toBeUndefined();
  });

  verifies(
    "T10",
    "cookies, forwarding, hop-by-hop, Connection-named and X-Tunnel headers never reach an agent",
    async () => {
      const node = new SimulatedNode();
      const { tunnel, agentKey, connectorKey } = node.tunnel();
      const poll = await node.poll(tunnel, agentKey);
      const withheld = [
        "Cookie",
        "Forwarded",
        "X-Forwarded-For",
        "Via",
        "X-Real-IP",
        "TE",
        "Keep-Alive",
        "Proxy-Authorization",
        "Upgrade",
        "Host",
        "Origin",
        "X-Tunnel-Shard-Token",
        "X-Nominated",
      ];
      await node.call(tunnel, connectorKey, {
        headers: [
          ...withheld.flatMap((name) => [name, "planted"]),
          "Connection",
          "x-nominated, close",
          "X-Kept",
          "yes",
        ],
      });
      expect(poll.text).not.toContain("planted");
      expect(commandOf(poll).headers["X-Kept"]).toEqual(["yes"]);
    },
  );

  test("a header value beyond ASCII reaches the agent as the text that its UTF-8 bytes are", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const poll = await node.poll(tunnel, agentKey);
    const onTheWire = Buffer.from("名前 é").toString("latin1");
    await node.call(tunnel, connectorKey, { headers: ["X-Name", onTheWire, "X-Latin", "caf\u00e9"] });
    const { headers } = commandOf(poll);
    expect([headers["X-Name"], headers["X-Latin"]]).toEqual([["名前 é"], ["café"]]);
  });

  test("a body of undeclared length counts in the node's budget as what it is, once it is read", async () => {
    const node = new SimulatedNode({ bodyBytesMax: 5 * 1024 * 1024 });
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    await node.poll(tunnel, agentKey, { query: "channel=other" });
    const chunked = { headers: ["Transfer-Encoding", "chunked"] };
    await node.call(tunnel, connectorKey, chunked);
    const second = await node.call(tunnel, connectorKey, chunked);
    expect([second.errorCode, node.entry.calls.size]).toEqual([undefined, 2]);
  });

  verifies("T3", "X-Request-Id goes through to the agent's command", async () => {
    const node = new SimulatedNode();
    const { tunnel, agentKey, connectorKey } = node.tunnel();
    const poll = await node.poll(tunnel, agentKey);
    const call = await node.call(tunnel, connectorKey);
    expect(commandOf(poll).headers["X-Request-Id"]).toEqual([call.requestId]);
  });
});
