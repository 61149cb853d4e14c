// The operator listener on real sockets: who may speak to it, what it serves, how it refuses.

import { createLogger, createNodeRuntime } from "@moor/runtime";
import { createTempDir, verifies, type TempDir } from "@moor/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mintKey } from "../src/directory/keys.ts";
import { openSqliteDirectory, type OpenDirectory } from "../src/directory/sqlite-directory.ts";
import { createMetrics } from "../src/operator/metrics.ts";
import { createOperatorListener, type OperatorListener } from "../src/operator/operator-listener.ts";
import { registerShards, UNKNOWN_TUNNEL } from "./directory-contract.ts";
import { askOperator, type OperatorAsk, type OperatorReply } from "./operator-requests.ts";
import { idleParts } from "./support/operator-parts.ts";

const runtime = createNodeRuntime();
const token = mintKey("operator", runtime).key;
const logLines: string[] = [];
let temp: TempDir;
let open: OpenDirectory;
let listener: OperatorListener;
let port: number;
let isReady = true;

beforeAll(async () => {
  temp = await createTempDir("operator");
  const logger = createLogger({ level: "debug", destination: { write: (line) => void logLines.push(line) } });
  open = await openSqliteDirectory({ dir: temp.path, runtime, logger });
  await registerShards(open.directory, "s1");
  listener = createOperatorListener({
    ...open,
    ...idleParts(),
    metrics: createMetrics({ withProcess: false }),
    token,
    runtime,
    logger,
    publicUrl: () => "http://moor.example/",
    isReady: () => isReady,
  });
  ({ port } = await listener.listen("127.0.0.1", 0));
});

afterAll(async () => {
  await listener.close();
  await open.directory.close();
  await temp.remove();
});

const authorised = () => ({ Authorization: `Bearer ${token.reveal()}` });

function ask(
  method: string,
  path: string,
  body?: unknown,
  more: OperatorAsk["headers"] = {},
): Promise<OperatorReply> {
  const json = body === undefined ? {} : { "Content-Type": "application/json" };
  return askOperator(port, {
    method,
    path,
    headers: { ...authorised(), ...json, ...more },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}

/** Expects the T3 envelope with `code`, and what every answer has. */
function expectRefusal(reply: OperatorReply, status: number, code: string, param?: string): void {
  expect([reply.status, reply.text.slice(0, 500)]).toEqual([status, expect.stringContaining(code)]);
  const error = reply.json?.["error"] as Record<string, unknown>;
  expect(error).toMatchObject({ code, message: expect.any(String), type: expect.any(String) });
  expect(error["param"]).toBe(param);
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  expect(reply.headers["x-request-id"]).toMatch(/^\S+$/);
}

async function createTunnel(fields: unknown = {}): Promise<Record<string, string>> {
  const reply = await ask("POST", "/v1/tunnels", fields);
  expect(reply.status).toBe(201);
  return reply.json as Record<string, string>;
}

verifies("T1", "a tunnel is created, shown, listed, updated by the fields present, and deleted", async () => {
  const created = await createTunnel({
    name: "notes",
    description: "d",
    access: "key",
    deadline: "2m",
    unknown: [1],
  });
  expect(created).toMatchObject({
    name: "notes",
    description: "d",
    access: "key",
    deadline: "120s",
    seen: false,
  });
  expect(created["connector_url"]).toBe(`http://moor.example/v1/mcp/${created["id"]}`);
  expect(new Date(created["created_at"] ?? "").getTime()).toBeGreaterThan(0);
  const path = `/v1/tunnels/${created["id"]}`;
  const shown = await ask("GET", path);
  expect(shown.status).toBe(200);
  const updated = await ask("POST", path, { description: "e", unknown: true });
  expect(updated.json).toEqual({ ...shown.json, description: "e" });
  const list = await ask("GET", "/v1/tunnels");
  expect(Object.keys(list.json ?? {}).toSorted()).toEqual(["next", "tunnels"]);
  expect(list.json?.["tunnels"]).toContainEqual(updated.json);
  expect((await ask("DELETE", path)).json).toEqual({ id: created["id"], deleted: true });
  expectRefusal(await ask("GET", path), 404, "tunnel_not_found");
  expectRefusal(await ask("DELETE", path), 404, "tunnel_not_found");
});

test("a tunnel is created from no body at all", async () => {
  const reply = await ask("POST", "/v1/tunnels");
  expect(reply.status).toBe(201);
  expect(reply.json).toMatchObject({ access: "key", deadline: "55s" });
});

test("lists are paged by limit and after", async () => {
  await Promise.all([createTunnel(), createTunnel(), createTunnel()]);
  const first = await ask("GET", "/v1/tunnels?limit=2");
  expect(first.json?.["tunnels"]).toHaveLength(2);
  const second = await ask("GET", `/v1/tunnels?limit=2&after=${String(first.json?.["next"])}`);
  const ids = [first, second].flatMap((page) =>
    ((page.json?.["tunnels"] ?? []) as { id: string }[]).map(({ id }) => id),
  );
  expect(new Set(ids).size).toBe(ids.length);
  expectRefusal(await ask("GET", "/v1/tunnels?limit=x"), 400, "invalid_request", "limit");
  expectRefusal(await ask("GET", "/v1/tunnels?after=%20"), 400, "invalid_request", "after");
});

verifies("T2", "keys are created, listed without their text, and revoked", async () => {
  const tunnel = await createTunnel();
  const made = await ask("POST", "/v1/keys", { tunnel: tunnel["id"], kind: "agent", label: "spare" });
  expect(made.status).toBe(201);
  const { key, ...record } = made.json ?? {};
  expect(key).toMatch(/^moor_agent_/);
  expect(record["prefix"]).toBe(String(key).slice(0, "moor_agent_".length + 6));
  expect(record).toMatchObject({ kind: "agent", tunnel: tunnel["id"], label: "spare", revoked: false });
  const listed = await ask("GET", `/v1/keys?tunnel=${tunnel["id"]}`);
  expect(listed.json?.["keys"]).toHaveLength(3);
  expect(listed.json?.["keys"]).toContainEqual(record);
  const path = `/v1/keys/${String(record["id"])}`;
  expect((await ask("DELETE", path)).json).toEqual({ ...record, revoked: true });
  expect((await ask("GET", path)).json).toEqual({ ...record, revoked: true });
  expectRefusal(await ask("DELETE", "/v1/keys/key_none"), 404, "key_not_found");
  expectRefusal(await ask("GET", "/v1/keys/key_none"), 404, "key_not_found");
});

verifies("T2", "no key but the operator token opens the operator listener", async () => {
  const tunnel = await createTunnel();
  const wrong = [
    undefined,
    "",
    "Bearer",
    `Basic ${token.reveal()}`,
    `Bearer ${token.reveal()}x`,
    `Bearer ${tunnel["agent_key"]}`,
    `Bearer ${tunnel["connector_key"]}`,
    `Bearer ${mintKey("operator", runtime).key.reveal()}`,
  ];
  const paths = ["/v1/tunnels", "/metrics", "/v1/keys", `/v1/tunnels/${tunnel["id"]}`, "/nowhere"];
  for (const authorization of wrong) {
    for (const path of paths) {
      const headers: Record<string, string> =
        authorization === undefined ? {} : { Authorization: authorization };
      const reply = await askOperator(port, { path, headers });
      expectRefusal(reply, 401, "unauthorized");
      expect(reply.headers["www-authenticate"]).toBe("Bearer");
    }
  }
});

test.each(["evil.example", "127.0.0.1.evil.example", "10.0.0.1:7070", "localhost:80:80", "[::1", "?"])(
  "a Host of %j is refused, whatever the token",
  async (host) => {
    for (const path of ["/v1/tunnels", "/healthz", "/metrics"]) {
      expectRefusal(await ask("GET", path, undefined, { Host: host }), 403, "host_not_allowed");
    }
  },
);

test.each(["localhost", "LOCALHOST:7070", "127.0.0.1", "127.9.9.9:1", "[::1]:7070"])(
  "a Host of %j is served",
  async (host) => {
    expect((await ask("GET", "/v1/tunnels", undefined, { Host: host })).status).toBe(200);
  },
);

test("a page of another origin is refused, the listener's own origin is served", async () => {
  const host = `127.0.0.1:${port}`;
  for (const origin of [
    "http://evil.example",
    "null",
    "",
    `https://${host}`,
    `http://127.0.0.1:${port + 1}`,
  ]) {
    const reply = await ask("POST", "/v1/tunnels", {}, { Host: host, Origin: origin });
    expectRefusal(reply, 403, "host_not_allowed");
    expect(reply.headers["access-control-allow-origin"]).toBeUndefined();
  }
  expect((await ask("GET", "/v1/tunnels", undefined, { Host: host, Origin: `http://${host}` })).status).toBe(
    200,
  );
});

verifies("T3", "every wrong request gets the envelope, its code and a request id", async () => {
  const tunnel = await createTunnel();
  const path = `/v1/tunnels/${tunnel["id"]}`;
  expectRefusal(await ask("GET", "/v1/tunnels/nope"), 400, "invalid_tunnel_id_format", "id");
  expectRefusal(await ask("GET", "/v1/keys?tunnel=nope"), 400, "invalid_tunnel_id_format", "tunnel");
  expectRefusal(await ask("GET", `/v1/keys?tunnel=${UNKNOWN_TUNNEL}`), 404, "tunnel_not_found");
  expectRefusal(await ask("POST", "/v1/tunnels", "{"), 400, "invalid_json_payload");
  expectRefusal(
    await ask("POST", "/v1/tunnels", Buffer.from([0x22, 0xff, 0x22]).toString("latin1")),
    400,
    "invalid_request",
  );
  expectRefusal(await ask("POST", "/v1/tunnels", "[]"), 400, "invalid_request");
  expectRefusal(await ask("POST", "/v1/tunnels", { name: 5 }), 400, "invalid_request", "name");
  expectRefusal(await ask("POST", "/v1/tunnels", { access: "all" }), 400, "invalid_request", "access");
  expectRefusal(await ask("POST", "/v1/tunnels", { deadline: "soon" }), 400, "invalid_request", "deadline");
  expectRefusal(await ask("POST", path, { deadline: "16m" }), 400, "invalid_request", "deadline");
  expectRefusal(
    await ask("POST", "/v1/keys", { tunnel: tunnel["id"], kind: "operator" }),
    400,
    "invalid_request",
    "kind",
  );
  expectRefusal(await ask("POST", "/v1/keys", { kind: "agent" }), 400, "invalid_request", "tunnel");
  expectRefusal(
    await ask("POST", "/v1/tunnels", "a=1", { "Content-Type": "text/plain" }),
    415,
    "unsupported_media_type",
  );
  expectRefusal(
    await ask("POST", "/v1/tunnels", {}, { "Content-Encoding": "gzip" }),
    415,
    "unsupported_media_type",
  );
  expectRefusal(await ask("GET", "/v1/tunnels/"), 404, "not_found");
  expectRefusal(await ask("GET", "/"), 404, "not_found");
  expectRefusal(await ask("GET", "//v1/tunnels"), 404, "not_found");
});

verifies(
  "T1",
  "a known path with another method is 405 with Allow, and nothing is ever a redirect",
  async () => {
    const allowed: Record<string, string> = {
      "/v1/tunnels": "GET, POST",
      [`/v1/tunnels/${UNKNOWN_TUNNEL}`]: "GET, POST, DELETE",
      "/v1/keys": "GET, POST",
      "/v1/keys/key_none": "GET, DELETE",
      "/metrics": "GET, HEAD",
      "/healthz": "GET, HEAD",
    };
    for (const [path, allow] of Object.entries(allowed)) {
      const reply = await ask("PATCH", path);
      expectRefusal(reply, 405, "method_not_allowed");
      expect(reply.headers["allow"]).toBe(allow);
    }
    for (const path of ["/v1", "/v1/tunnels/", "/V1/tunnels", "/v1/tunnels/../tunnels", "/metrics/"]) {
      for (const method of ["GET", "POST", "DELETE"]) {
        expect(Math.trunc((await ask(method, path)).status / 100)).toBe(4);
      }
    }
  },
);

test.each([false, true])("a body over 64 KiB is refused, chunked: %j", async (isChunked) => {
  const body = JSON.stringify({ description: "x".repeat(64 * 1024) });
  const headers = { ...authorised(), "Content-Type": "application/json" };
  const reply = await askOperator(port, { method: "POST", path: "/v1/tunnels", headers, body, isChunked });
  expectRefusal(reply, 413, "request_body_too_large");
});

test("a usable X-Request-Id is given back, another is replaced", async () => {
  const given = await ask("GET", "/v1/tunnels", undefined, { "X-Request-Id": "mine-1" });
  expect(given.headers["x-request-id"]).toBe("mine-1");
  const replaced = await ask("GET", "/v1/tunnels", undefined, { "X-Request-Id": "not usable" });
  expect(replaced.headers["x-request-id"]).toMatch(/^req_[0-9a-f]+$/);
});

test("health needs no token and tells no detail; metrics need it", async () => {
  expect(await askOperator(port, { path: "/healthz" })).toMatchObject({
    status: 200,
    json: { status: "ok" },
  });
  expect(await askOperator(port, { path: "/readyz" })).toMatchObject({ status: 200, json: { status: "ok" } });
  isReady = false;
  expectRefusal(await askOperator(port, { path: "/readyz" }), 503, "node_draining");
  expect((await askOperator(port, { path: "/healthz" })).status).toBe(200);
  isReady = true;
  const metrics = await ask("GET", "/metrics");
  expect(metrics.status).toBe(200);
  expect(metrics.headers["content-type"]).toContain("text/plain");
  expect(metrics.text).toMatch(/^moor_calls_ended_total\{outcome="answered"\} 0$/m);
  expect(metrics.text).toMatch(/^moor_directory_mutations_total\{outcome="committed"\} [1-9]/m);
});

test("secrets appear in the answer that creates them and nowhere after", async () => {
  const tunnel = await createTunnel({ name: "planted" });
  const key = await ask("POST", "/v1/keys", { tunnel: tunnel["id"], kind: "connector" });
  const secrets = [token.reveal(), tunnel["agent_key"], tunnel["connector_key"], String(key.json?.["key"])];
  const path = `/v1/tunnels/${tunnel["id"]}`;
  const replies = [
    await ask("GET", path),
    await ask("POST", path, { name: "planted again" }),
    await ask("GET", "/v1/tunnels?limit=500"),
    await ask("GET", "/v1/keys?limit=500"),
    await ask("GET", `/v1/keys/${String(key.json?.["id"])}`),
    await ask("DELETE", `/v1/keys/${String(key.json?.["id"])}`),
    await ask("GET", "/metrics"),
    await ask("POST", "/v1/tunnels", { name: 1, access: tunnel["agent_key"] }),
    await ask("POST", "/v1/keys", { tunnel: tunnel["agent_key"], kind: tunnel["connector_key"] }),
    await ask("GET", `/v1/tunnels/${tunnel["agent_key"]}`),
    await ask("DELETE", `/v1/keys/${tunnel["agent_key"]}`),
    await ask("DELETE", path),
  ];
  const said = replies.map((reply) => reply.text + JSON.stringify(reply.headers)).join("\n");
  expect(said).toContain("planted again");
  for (const secret of secrets) {
    expect(secret?.length).toBeGreaterThan(50);
    expect(said).not.toContain(secret);
    expect(logLines.join("")).not.toContain(secret);
  }
});

test("each change leaves an audit line with its request id", async () => {
  logLines.length = 0;
  const tunnel = await ask("POST", "/v1/tunnels", {}, { "X-Request-Id": "audit-1" });
  const id = String(tunnel.json?.["id"]);
  const key = await ask("POST", "/v1/keys", { tunnel: id, kind: "agent" }, { "X-Request-Id": "audit-2" });
  await ask("DELETE", `/v1/keys/${String(key.json?.["id"])}`, undefined, { "X-Request-Id": "audit-3" });
  await ask("POST", `/v1/tunnels/${id}`, { name: "n" }, { "X-Request-Id": "audit-4" });
  await ask("DELETE", `/v1/tunnels/${id}`, undefined, { "X-Request-Id": "audit-5" });
  const audit = logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(audit.map((line) => [line["event"], line["requestId"], line["tunnel"]])).toEqual([
    ["tunnel-created", "audit-1", id],
    ["key-created", "audit-2", id],
    ["key-revoked", "audit-3", id],
    ["tunnel-updated", "audit-4", id],
    ["tunnel-deleted", "audit-5", id],
  ]);
});

test("a taken port is a ConfigError for --operator-port", async () => {
  const second = createOperatorListener({
    ...idleParts(),
    ...open,
    metrics: createMetrics({ withProcess: false }),
    token,
    runtime,
    logger: createLogger({ level: "silent" }),
    publicUrl: () => "http://moor.example",
  });
  await expect(second.listen("127.0.0.1", port)).rejects.toMatchObject({ option: "--operator-port" });
  await second.close();
});
