import { startLedgerServer, verifies } from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import {
  command,
  commands,
  eventStream,
  posted,
  responsesTo,
  startAgent,
  startServiceWith,
  toolCall,
} from "./agent-kit.ts";

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}';
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0}}';
const JSON_TYPE = ["Content-Type", "application/json"] as const;

async function ledger() {
  const server = await startLedgerServer();
  onTestFinished(() => server.close());
  return server;
}

verifies(
  ["T5", "T6", "T20"],
  "a call reaches the target and its result the service byte for byte",
  async () => {
    const target = await ledger();
    const rawResult = '{"b":1.0,"a":12345678901234567890,"s":"\\u00e9\\/"}';
    target.answerWith(() => ({ kind: "result", rawResult }));
    const message = toolCall("9007199254740993", '{"z":1.0,"a":1e2}');
    const service = await startServiceWith(commands(command({ id: "r1", jsonrpc: message })));
    startAgent({ endpoint: service.origin, channels: [{ mcpUrl: target.url }] });
    await service.untilSeen("a response", () => service.responses.length > 0);
    expect(target.entries.map(({ body }) => body.toString())).toEqual([message]);
    const [response] = service.responses;
    expect(response?.values("X-Tunnel-Shard-Token")).toEqual(["token-of-r1"]);
    expect(response?.body.toString()).toContain(`"result":${rawResult}`);
    expect(response?.body.toString()).toContain('"id":9007199254740993');
    expect(posted(response?.body ?? Buffer.alloc(0))).toMatchObject({
      request_id: "r1",
      channel: "main",
      resp_type: "jsonrpc_response",
      resp_code: 200,
    });
  },
);

verifies(["T6", "T20"], "a result of 10 MB arrives whole, from JSON and from an event stream", async () => {
  const big = `{"jsonrpc":"2.0","id":1,"result":{"text":"${"x\\u20ac".repeat(1_450_000)}"}}`;
  for (const answer of [
    { kind: "answer", status: 200, headers: [JSON_TYPE], body: big } as const,
    eventStream([big]),
  ]) {
    const { bodies } = await responsesTo(() => answer);
    expect(bodies[0]?.includes(big)).toBe(true);
  }
});

verifies(
  ["T19", "T20"],
  "notifications of a stream go out in order before the final, each as it was written",
  async () => {
    const notes = [1, 2, 3].map((n) => PROGRESS.replace("1.0", `${n}.0`));
    const { responses, bodies } = await responsesTo(() => eventStream([...notes, RESULT]));
    expect(responses.map(({ resp_type }) => resp_type)).toEqual([
      "jsonrpc_notify",
      "jsonrpc_notify",
      "jsonrpc_notify",
      "jsonrpc_response",
    ]);
    for (const [index, note] of notes.entries())
      expect(bodies[index]?.toString()).toContain(`"resp_json":${note}}`);
    expect(responses.at(-1)).toMatchObject({
      resp_json: { result: { ok: true } },
      resp_headers: { "Content-Type": ["text/event-stream"], "Mcp-Session-Id": ["s1"] },
    });
  },
);

verifies(
  "T19",
  "a stream that is faster than the service is held back, and nothing of it is lost or reordered",
  async () => {
    const filler = "x".repeat(20_000);
    const notes = Array.from({ length: 200 }, (_, n) => PROGRESS.replace("1.0", `${n},"filler":"${filler}"`));
    const { responses } = await responsesTo(() => eventStream([...notes, RESULT]));
    const order = responses.map(
      ({ resp_json }) => (resp_json?.params as { progress: number } | undefined)?.progress,
    );
    expect(order).toEqual([...notes.keys(), undefined]);
  },
);

verifies("T20", "the final goes out when it is there, not when the stream ends", async () => {
  const { responses } = await responsesTo(() => eventStream([RESULT], false));
  expect(responses).toHaveLength(1);
});

verifies("T20", "a stream that ends without the response is one -32603 with a tunnel_failure", async () => {
  const { responses } = await responsesTo(() =>
    eventStream([PROGRESS, '{"jsonrpc":"2.0","id":2,"result":{}}', "junk"]),
  );
  expect(responses.map(({ resp_type, resp_code }) => [resp_type, resp_code])).toEqual([
    ["jsonrpc_notify", 200],
    ["jsonrpc_response", 502],
  ]);
  expect(responses[1]?.resp_json).toMatchObject({
    id: 1,
    error: {
      code: -32_603,
      data: { tunnel_failure: { version: 1, source: "protocol", upstream_response_received: true } },
    },
  });
});

verifies("T22", "a request of the server's is refused towards it and does not end the call", async () => {
  const ask = '{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{}}';
  const { responses, target } = await responsesTo(({ body }) =>
    body.includes("tools/call") ? eventStream([ask, RESULT]) : { kind: "answer", status: 202 },
  );
  expect(responses.map(({ resp_json }) => resp_json?.id)).toEqual([1]);
  await target.untilSeen("the refusal", (requests) => requests.length === 2);
  const refusal = target.requests[1];
  expect(JSON.parse(refusal?.body.toString() ?? "")).toMatchObject({ id: "srv-1", error: { code: -32_601 } });
  expect(refusal?.values("Mcp-Session-Id")).toEqual(["s1"]);
});

verifies("T20", "an upstream JSON-RPC error of the same id passes unchanged with its status", async () => {
  const error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no","data":{"n":1.0}}}';
  const { responses, bodies } = await responsesTo(() => ({
    kind: "answer",
    status: 404,
    headers: [JSON_TYPE],
    body: error,
  }));
  expect(responses[0]?.resp_code).toBe(404);
  expect(bodies[0]?.toString()).toContain(`"resp_json":${error}`);
});

verifies(
  "T20",
  "an error of another id, or no JSON at all, becomes -32603 with the target's status and no text of its",
  async () => {
    for (const body of [
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"body-marker"}}',
      "<p>body-marker",
    ]) {
      const { responses, bodies } = await responsesTo(() => ({ kind: "answer", status: 404, body }));
      expect(bodies[0]?.toString()).not.toContain("body-marker");
      expect(responses[0]).toMatchObject({
        resp_code: 404,
        resp_headers: { "Content-Type": ["application/json"] },
        resp_json: {
          id: 1,
          error: { code: -32_603, data: { tunnel_failure: { source: "target_http", upstream_status: 404 } } },
        },
      });
    }
  },
);

verifies("T20", "a 401 keeps WWW-Authenticate", async () => {
  const challenge = 'Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource"';
  const { responses } = await responsesTo(() => ({
    kind: "answer",
    status: 401,
    headers: [["WWW-Authenticate", challenge]],
  }));
  expect(responses[0]?.resp_code).toBe(401);
  expect(responses[0]?.resp_headers?.["WWW-Authenticate"]).toEqual([challenge]);
});

verifies(["T20", "R18"], "a redirect of the target is refused, not followed", async () => {
  const { responses, target } = await responsesTo(({ path }) =>
    path === "/mcp"
      ? { kind: "answer", status: 307, headers: [["Location", "/elsewhere"]] }
      : { kind: "answer", status: 200, body: RESULT },
  );
  expect(responses[0]?.resp_code).toBe(502);
  expect(target.requests).toHaveLength(1);
});

verifies(
  "T20",
  "a target that is gone, closes or answers nonsense is told by its category alone",
  async () => {
    const failures = [];
    for (const answer of [
      { kind: "reset" },
      { kind: "raw", bytes: "nonsense\r\n\r\n" },
      {
        kind: "raw",
        bytes: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
      },
      { kind: "answer", status: 200, headers: [JSON_TYPE], body: '{"jsonrpc":"2.0","id":2,"result":{}}' },
      { kind: "answer", status: 202 },
    ] as const) {
      const { responses } = await responsesTo(() => answer);
      expect(responses[0]?.resp_code).toBe(502);
      failures.push(responses[0]?.resp_json?.error?.data?.tunnel_failure?.["source"]);
    }
    expect(failures).toEqual(["transport_closed", "protocol", "protocol", "protocol", "protocol"]);

    const service = await startServiceWith(commands(command({ id: "r1", jsonrpc: toolCall("1") })));
    startAgent({
      endpoint: service.origin,
      channels: [{ mcpUrl: "http://127.0.0.1:1/path-marker?query-marker" }],
    });
    await service.untilSeen("a final", () => service.responses.length > 0);
    const body = service.responses[0]?.body.toString() ?? "";
    expect(body).not.toContain("marker");
    expect(JSON.parse(body)).toMatchObject({
      resp_code: 502,
      resp_json: {
        error: { data: { tunnel_failure: { source: "connect", upstream_response_received: false } } },
      },
    });
  },
);

verifies(
  ["T6", "T20"],
  "a notification is acknowledged, with the target's status where that is an error",
  async () => {
    const jsonrpc = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
    const taken = await responsesTo(() => ({ kind: "answer", status: 202 }), { jsonrpc });
    expect(taken.responses).toMatchObject([{ resp_type: "notify_ack", resp_code: 202 }]);
    expect(taken.target.requests[0]?.body.toString()).toBe(jsonrpc);
    const refused = await responsesTo(() => ({ kind: "answer", status: 404 }), { jsonrpc });
    expect(refused.responses).toMatchObject([{ resp_type: "notify_ack", resp_code: 404 }]);
  },
);

verifies("T6", "ending a session is a DELETE to the target, whose status is passed on", async () => {
  for (const [status, resp_code] of [
    [200, 200],
    [405, 405],
    [404, 404],
  ] as const) {
    const { responses, target } = await responsesTo(() => ({ kind: "answer", status }), {
      type: "session_termination",
      headers: { "Mcp-Session-Id": ["s1"] },
    });
    expect(responses).toMatchObject([{ resp_type: "session_termination_response", resp_code }]);
    expect(target.requests[0]?.method).toBe("DELETE");
    expect(target.requests[0]?.values("Mcp-Session-Id")).toEqual(["s1"]);
  }
});

test("protected-resource metadata of the target is fetched from its well-known path", async () => {
  const metadata = '{"resource":"https://mcp.example/mcp","x":1.0}';
  const { bodies, target } = await responsesTo(
    () => ({ kind: "answer", status: 200, headers: [JSON_TYPE], body: metadata }),
    { type: "oauth_discovery" },
  );
  expect(bodies[0]?.toString()).toContain(`"resp_json":${metadata}`);
  expect(target.requests[0]?.path).toBe("/.well-known/oauth-protected-resource/mcp");
});

verifies(
  "T20",
  "command headers win over static ones on the wire; the agent's own never reach the target",
  async () => {
    const target = await ledger();
    const headers = {
      Authorization: ["Bearer caller"],
      "Mcp-Session-Id": ["s"],
      "X-Tunnel-Shard-Token": ["no"],
    };
    const service = await startServiceWith(commands(command({ id: "r1", jsonrpc: toolCall("1"), headers })));
    startAgent({
      endpoint: service.origin,
      channels: [{ mcpUrl: target.url }],
      mcpHeaders: [
        ["Authorization", "Bearer static"],
        ["X-Api-Key", "static"],
      ],
    });
    await service.untilSeen("a response", () => service.responses.length > 0);
    const seen = target.entries[0]?.headers ?? {};
    expect(seen).toMatchObject({
      authorization: "Bearer caller",
      "x-api-key": "static",
      "mcp-session-id": "s",
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    });
    expect(Object.keys(seen).filter((name) => name.startsWith("x-tunnel"))).toEqual([]);
  },
);

verifies("T18", "a target that hangs past the command's time is let go, and nothing is posted", async () => {
  const target = await ledger();
  target.answerWith((entry) => (entry.rawId === "1" ? { kind: "hang" } : undefined));
  const slow = command({ id: "slow", jsonrpc: toolCall("1"), timeout: "200ms" });
  const service = await startServiceWith(commands(slow, command({ id: "quick", jsonrpc: toolCall("2") })));
  const agent = startAgent({ endpoint: service.origin, channels: [{ mcpUrl: target.url }], concurrency: 2 });
  await service.untilSeen(
    "a poll for both slots after one",
    () => service.polls.at(-1)?.query.get("limit") === "1",
  );
  await expect.poll(() => agent.status().inProgress, { timeout: 20_000 }).toBe(0);
  expect(service.responses.map(({ body }) => posted(body).request_id)).toEqual(["quick"]);
});
