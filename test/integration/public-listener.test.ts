// What only real sockets show: framing, limits, half-closed peers, leaving.

import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { BASE_HOST_DEFAULT, devNode, startNode, type MoorNode } from "@moor/server";
import { createTempDir, until, verifies, within, type TempDir } from "@moor/testkit";

interface Created {
  readonly id: string;
  readonly agent_key: string;
  readonly connector_key: string;
}

describe("public listener", () => {
  let folder: TempDir;
  let node: MoorNode;
  let tunnel: Created;
  let operatorToken: string;
  const sockets: Socket[] = [];

  beforeAll(async () => {
    folder = await createTempDir("listener");
    node = await start();
    tunnel = await create();
  });

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  afterAll(async () => {
    await node.close({ graceMs: 0 });
    await folder.remove();
  });

  function start(): Promise<MoorNode> {
    return startNode({
      host: "127.0.0.1",
      port: 0,
      operatorHost: "127.0.0.1",
      operatorPort: 0,
      dataDir: folder.path,
      node: devNode(1),
      baseHost: BASE_HOST_DEFAULT,
      directory: { kind: "sqlite" },
      runtime: createNodeRuntime(),
      logger: createSilentLogger(),
    });
  }

  async function create(): Promise<Created> {
    const saved = JSON.parse(await readFile(`${folder.path}/operator.json`, "utf8")) as { token: string };
    operatorToken = saved.token;
    const answer = await fetch(`${node.operatorUrl}/v1/tunnels`, {
      method: "POST",
      headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" },
      body: "{}",
    });
    return (await answer.json()) as Created;
  }

  /** Opens a connection and collects what comes back. */
  function dial(): {
    readonly socket: Socket;
    readonly received: () => string;
    readonly closed: Promise<void>;
  } {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(node.endpoint).port) });
    sockets.push(socket);
    let text = "";
    socket.on("data", (chunk) => (text += chunk.toString("latin1"))).on("error", () => {});
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    return { socket, received: () => text, closed };
  }

  const pollHead = (query = "") =>
    `GET /v1/tunnels/${tunnel.id}/poll${query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tunnel.agent_key}\r\n\r\n`;

  const callHead = (more: string) =>
    `POST /v1/mcp/${tunnel.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tunnel.connector_key}\r\n` +
    `Content-Type: application/json\r\n${more}\r\n`;

  test("a request that is no HTTP gets a 400 with the error envelope and a closed connection", async () => {
    const { socket, received, closed } = dial();
    socket.write("NONSENSE\r\n\r\n");
    await within(closed, "the connection to close");
    expect(received()).toMatch(/^HTTP\/1\.1 400 /);
    expect(received()).toContain('"code":"invalid_request"');
  });

  verifies(
    "T9",
    "a body that outgrows its limit midway is 413 and the connection is cut soon after",
    async () => {
      const { socket, received, closed } = dial();
      socket.write(callHead("Transfer-Encoding: chunked\r\n"));
      const mebibyte = Buffer.alloc(1024 * 1024, 0x20);
      for (let chunk = 0; chunk < 5; chunk += 1) {
        socket.write("100000\r\n");
        socket.write(mebibyte);
        socket.write("\r\n");
      }
      await until(() => received().includes("request_body_too_large"), "the refusal");
      expect(received()).toMatch(/^HTTP\/1\.1 413 /);
      expect(received()).toMatch(/connection: close/i);
      await within(closed, "the connection to be cut");
    },
  );

  verifies(
    "T9",
    "a declared length over the limit is refused before a byte of the body is sent",
    async () => {
      const { socket, received } = dial();
      socket.write(callHead("Content-Length: 4194305\r\n"));
      await until(() => received().includes("request_body_too_large"), "the refusal");
    },
  );

  test("bytes of a body whose caller leaves midway are held no longer", async () => {
    const { socket } = dial();
    socket.write(`${callHead("Content-Length: 1000\r\n")}{"jsonrpc"`);
    await until(gauge("moor_call_bytes_held", 1_000), "the body to be charged");
    socket.destroy();
    await until(gauge("moor_call_bytes_held", 0), "the body to be given back");
  });

  verifies("T5", "a header block that holds an 8 KiB command token is taken", async () => {
    const answer = await fetch(`${node.endpoint}/v1/tunnels/${tunnel.id}/response`, {
      method: "POST",
      headers: { authorization: `Bearer ${tunnel.agent_key}`, "x-tunnel-shard-token": "a".repeat(8192) },
      body: '{"request_id":"r1","resp_json":{}}',
    });
    expect(answer.status).toBe(404); // Read, and of an entry that is no more.
  });

  verifies(
    "T4",
    "a poller that closes its connection is gone at once: the next call waits for another",
    async () => {
      const { socket } = dial();
      socket.write(pollHead());
      await until(pollsWaiting(1), "the poll to wait");
      socket.end();
      await until(pollsWaiting(0), "the poll to be gone");
      const left = new AbortController();
      const call = fetch(`${node.endpoint}/v1/mcp/${tunnel.id}`, {
        method: "POST",
        headers: { authorization: `Bearer ${tunnel.connector_key}`, "content-type": "application/json" },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        signal: left.signal,
      });
      const second = dial();
      await until(callsQueued(1), "the call to be queued");
      second.socket.write(pollHead());
      await until(() => second.received().includes('"commands":[{'), "the command");
      left.abort();
      await expect(call).rejects.toThrow();
      await until(gauge("moor_calls_held", 0), "the call to be forgotten");
    },
  );

  verifies(
    "T3",
    "every answer has an X-Request-Id: the peer's own if it is safe to print, else a new one",
    async () => {
      const of = async (given?: string) => {
        const headers: Record<string, string> = given === undefined ? {} : { "x-request-id": given };
        return (await fetch(`${node.endpoint}/v1/nothing`, { headers })).headers.get("x-request-id");
      };
      expect(await of("my-id.1")).toBe("my-id.1");
      expect(await of()).toMatch(/^req_[0-9a-f]{32}$/);
      expect(await of("a b")).toMatch(/^req_[0-9a-f]{32}$/);
      expect(await of("a".repeat(129))).toMatch(/^req_[0-9a-f]{32}$/);
    },
  );

  test("a second node on the same port is told which, on the same data which", async () => {
    await expect(start()).rejects.toThrow(/in use|used by|another/i);
  });

  test("leaving: polls end 204 with Connection: close, held calls finish, then nothing listens", async () => {
    const held = node;
    const leaving = dial();
    leaving.socket.write(pollHead("?channel=nobody"));
    await until(pollsWaiting(1), "the poll to wait");
    const closing = held.close({ graceMs: 10_000 });
    await within(leaving.closed, "the poll's connection to close");
    expect(leaving.received()).toMatch(/^HTTP\/1\.1 204 /);
    expect(leaving.received()).toMatch(/connection: close/i);
    await within(closing, "the node to stop");
    await expect(fetch(`${held.endpoint}/healthz`)).rejects.toThrow();
    node = await start();
  });

  function gauge(name: string, wanted: number): () => Promise<boolean> {
    return async () => {
      const authorization = `Bearer ${operatorToken}`;
      const text = await (await fetch(`${node.operatorUrl}/metrics`, { headers: { authorization } })).text();
      return new RegExp(`^${name} ${wanted}$`, "m").test(text);
    };
  }

  function pollsWaiting(wanted: number): () => Promise<boolean> {
    return gauge("moor_polls_waiting", wanted);
  }

  function callsQueued(wanted: number): () => Promise<boolean> {
    return gauge("moor_calls_queued", wanted);
  }
});
