import { beforeEach, describe, expect, test } from "vitest";
import { verifies } from "@moor/testkit";
import type { TunnelRecord } from "../src/directory/directory.ts";
import { parseAccept } from "../src/entry/accepted-types.ts";
import { callerStatus } from "../src/entry/caller-answer.ts";
import type { FakeExchange } from "./support/fake-exchange.ts";
import { commandOf, SimulatedNode, type ReceivedCommand } from "./support/simulated-node.ts";

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}';
const SSE = { "Content-Type": ["text/event-stream"] };

describe("answers", () => {
  let node: SimulatedNode;
  let tunnel: TunnelRecord;
  let agentKey: string;
  let connectorKey: string;
  let call: FakeExchange;
  let command: ReceivedCommand;

  async function handOut(accept?: string): Promise<void> {
    const poll = await node.poll(tunnel, agentKey);
    call = await node.call(tunnel, connectorKey, accept === undefined ? {} : { accept });
    command = commandOf(poll);
  }

  function respond(fields: {
    type?: string;
    json?: string;
    code?: number;
    headers?: object;
  }): Promise<FakeExchange> {
    const members = [
      `"request_id":"${command.request_id}"`,
      ...(fields.type === undefined ? [] : [`"resp_type":"${fields.type}"`]),
      ...(fields.json === undefined ? [] : [`"resp_json":${fields.json}`]),
      ...(fields.code === undefined ? [] : [`"resp_code":${fields.code}`]),
      ...(fields.headers === undefined ? [] : [`"resp_headers":${JSON.stringify(fields.headers)}`]),
    ];
    return node.respond(tunnel, agentKey, command, `{${members.join(",")}}`);
  }

  beforeEach(() => {
    node = new SimulatedNode();
    ({ tunnel, agentKey, connectorKey } = node.tunnel());
  });

  verifies(
    "T11",
    "only allowed headers of a final reach the caller, with their values as they were",
    async () => {
      await handOut();
      await respond({
        json: RESULT,
        headers: {
          "mcp-session-id": ["s-1"],
          "Mcp-Protocol-Version": ["2025-11-25"],
          "Last-Event-ID": ["7"],
          "WWW-Authenticate": ["Basic", 'Bearer realm="x"'],
          "Content-Type": ["application/json; charset=utf-8"],
          "Set-Cookie": ["planted=1"],
          "X-Other": ["planted"],
          Location: ["http://planted.example"],
        },
      });
      expect(call.headers).toMatchObject({
        "Mcp-Session-Id": ["s-1"],
        "Mcp-Protocol-Version": ["2025-11-25"],
        "Last-Event-Id": ["7"],
        "WWW-Authenticate": ["Basic", 'Bearer realm="x"'],
        "Content-Type": "application/json; charset=utf-8",
      });
      expect(JSON.stringify(call.headers)).not.toContain("planted");
    },
  );

  verifies(
    "T11",
    "resp_code maps: 1xx, 3xx and unknown errors to 502, an unknown 2xx to 200, known ones stay",
    () => {
      const mapped = [
        100, 103, 200, 202, 204, 299, 301, 307, 400, 401, 418, 499, 500, 503, 599, 600, 42, -1,
      ].map((code) => callerStatus(code, false));
      expect(mapped).toEqual([
        502, 502, 200, 202, 204, 200, 502, 502, 400, 401, 418, 502, 500, 503, 502, 502, 502, 502,
      ]);
      expect([200, 204, 205, 206, 404].map((code) => callerStatus(code, true))).toEqual([
        200, 200, 200, 206, 404,
      ]);
    },
  );

  verifies(
    "T11",
    "a notification first makes it SSE: each message an event at once, the stream ends with the final",
    async () => {
      await handOut();
      await respond({ type: "jsonrpc_notify", json: PROGRESS });
      expect([call.status, call.headers["Content-Type"]]).toEqual([200, "text/event-stream"]);
      expect(call.text).toBe(`data: ${PROGRESS}\n\n`);
      expect(call.isEnded).toBe(false);
      await respond({ json: RESULT, code: 500 });
      expect(call.text).toBe(`data: ${PROGRESS}\n\ndata: ${RESULT}\n\n`);
      expect(call.isEnded).toBe(true);
    },
  );

  verifies("T11", "a final whose Content-Type is SSE is one event; without it, plain JSON", async () => {
    await handOut();
    await respond({ json: RESULT, headers: { ...SSE, "Mcp-Session-Id": ["s-1"] } });
    expect([call.headers["Content-Type"], call.headers["Mcp-Session-Id"]]).toEqual([
      "text/event-stream",
      ["s-1"],
    ]);
    expect(call.text).toBe(`data: ${RESULT}\n\n`);
    await handOut();
    await respond({ json: RESULT });
    expect([call.headers["Content-Type"], call.text]).toEqual(["application/json", RESULT]);
  });

  verifies(
    "T11",
    "a caller that accepts only JSON gets the final alone; one that accepts only SSE gets an event",
    async () => {
      await handOut("application/json");
      expect((await respond({ type: "jsonrpc_notify", json: PROGRESS })).status).toBe(200);
      await respond({ json: RESULT, headers: SSE });
      expect([call.headers["Content-Type"], call.text]).toEqual(["application/json", RESULT]);
      await handOut("text/event-stream");
      await respond({ json: RESULT });
      expect(call.text).toBe(`data: ${RESULT}\n\n`);
    },
  );

  verifies("T11", "line breaks of a message become data lines of one event", async () => {
    await handOut();
    await respond({ json: '{\n"jsonrpc":"2.0",\r\n"id":1,\r"result":{}}', headers: SSE });
    expect(call.text).toBe('data: {\ndata: "jsonrpc":"2.0",\ndata: "id":1,\ndata: "result":{}}\n\n');
  });

  verifies("T11", "a stream carries a comment every 15 s until its end", async () => {
    await handOut();
    await respond({ type: "jsonrpc_notify", json: PROGRESS });
    await node.advance(14_999);
    expect(call.chunks).toHaveLength(1);
    await node.advance(1);
    await node.advance(15_000);
    expect(call.chunks.slice(1).map(String)).toEqual([": waiting\n\n", ": waiting\n\n"]);
    await respond({ json: RESULT });
    await node.advance(60_000);
    expect(call.chunks).toHaveLength(4);
  });

  verifies(
    ["T3", "T11"],
    "a failure after the stream began is a JSON-RPC error event with data.code",
    async () => {
      await handOut();
      await respond({ type: "jsonrpc_notify", json: PROGRESS });
      await node.advance(55_000);
      const last = call.text.trim().split("\n\n").at(-1)?.slice("data: ".length) ?? "";
      expect(JSON.parse(last)).toMatchObject({
        jsonrpc: "2.0",
        id: 1,
        error: { code: -32603, data: { code: "deadline_exceeded" } },
      });
      expect(call.isEnded).toBe(true);
    },
  );

  verifies(
    "T11",
    "503 with Retry-After only before hand-out; a handed-out call of a leaving node is 502 unknown",
    async () => {
      await handOut();
      const queued = await node.call(tunnel, connectorKey);
      const draining = node.entry.drain(1_000);
      await node.advance(1_000);
      await draining;
      expect([queued.status, queued.errorCode, queued.headers["Retry-After"]]).toEqual([
        503,
        "node_draining",
        "1",
      ]);
      expect([call.status, call.errorCode, call.headers["Retry-After"]]).toEqual([
        502,
        "command_outcome_unknown",
        undefined,
      ]);
      expect(call.json).toMatchObject({ error: { data: { outcome: "unknown" } } });
    },
  );

  verifies("T11", "a final without a message ends a stream that has begun with an error event", async () => {
    await handOut();
    await respond({ type: "jsonrpc_notify", json: PROGRESS });
    await respond({ code: 503 });
    const last = call.text.split("\n\n").at(-2) ?? "";
    expect(JSON.parse(last.replace(/^data: /, ""))).toMatchObject({
      id: 1,
      error: { code: -32603, data: { code: "invalid_agent_response" } },
    });
    expect(call.isEnded).toBe(true);
  });

  verifies(
    "T9",
    "a notification of an agent never begins an answer to a caller that waits for none: it still gets 202",
    async () => {
      const poll = await node.poll(tunnel, agentKey);
      call = await node.call(tunnel, connectorKey, { body: PROGRESS });
      command = commandOf(poll);
      const taken = await respond({ type: "jsonrpc_notify", json: PROGRESS });
      const final = await respond({ type: "notify_ack", code: 202 });
      expect([taken.status, final.status, call.status, call.text, call.isEnded]).toEqual([
        200,
        200,
        202,
        "",
        true,
      ]);
    },
  );

  test("a header value beyond ASCII reaches the caller as the UTF-8 bytes it is", async () => {
    await handOut();
    await respond({
      code: 401,
      json: RESULT,
      headers: { "WWW-Authenticate": ['Bearer realm="école 日本"', "split\r\nX-Planted: 1"] },
    });
    const utf8 = Buffer.from('Bearer realm="école 日本"').toString("latin1");
    expect(call.headers["WWW-Authenticate"]).toEqual([utf8]);
  });

  test("a deleted tunnel ends its queued calls with 404 and its handed-out ones as unknown", async () => {
    await handOut();
    const queued = await node.call(tunnel, connectorKey);
    const poll = await node.poll(tunnel, agentKey, { query: "channel=other" });
    node.replica.deleteTunnel(tunnel.id);
    expect([queued.status, call.status, poll.status]).toEqual([404, 502, 401]);
  });

  test("a caller that reads too slowly is cut", async () => {
    await handOut();
    await respond({ type: "jsonrpc_notify", json: PROGRESS });
    call.laggingBytes = 5 * 1024 * 1024;
    await respond({ type: "jsonrpc_notify", json: PROGRESS });
    expect(call.isDestroyed).toBe(true);
    expect(node.entry.calls.size).toBe(0);
  });

  test("a request's final without a message is 502, with an error status it keeps that status", async () => {
    await handOut();
    await respond({ code: 200 });
    expect([call.status, call.errorCode]).toEqual([502, "invalid_agent_response"]);
    await handOut();
    await respond({ code: 403 });
    expect([call.status, call.text]).toEqual([403, ""]);
  });
});

test("Accept is read with wildcards, parameters and q=0", () => {
  expect(parseAccept(undefined)).toEqual({ json: true, sse: true });
  expect(parseAccept("*/*")).toEqual({ json: true, sse: true });
  expect(parseAccept("application/json;q=0.9, text/event-stream")).toEqual({ json: true, sse: true });
  expect(parseAccept("Application/JSON")).toEqual({ json: true, sse: false });
  expect(parseAccept("text/*")).toEqual({ json: false, sse: true });
  expect(parseAccept("text/event-stream;q=0, */*")).toEqual({ json: true, sse: false });
  expect(parseAccept("text/html")).toEqual({ json: false, sse: false });
});
