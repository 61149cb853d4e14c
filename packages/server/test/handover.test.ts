// Handing a port and a data directory over: who waits and how long, who may be told to leave, what is relayed.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { createTempDir, until, verifies, VirtualRuntime, within } from "@moor/testkit";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { isDataFolderFree, openDataFolder } from "../src/directory/data-folder.ts";
import { leavingSocketPath, relayToLeaving } from "../src/handover/leaving-relay.ts";
import { openLeavingListener } from "../src/handover/leaving-listener.ts";
import {
  deleteProcessFile,
  processState,
  readProcessFile,
  writeProcessFile,
} from "../src/handover/process-file.ts";
import { takeOver } from "../src/handover/take-over.ts";
import { tellToLeave } from "../src/handover/take-port.ts";
import { WAITING_MAX, WAITING_MS, WaitingRoom, type WaitEnd } from "../src/handover/waiting-room.ts";
import type { NodeOptions } from "../src/node-options.ts";
import { FakeExchange } from "./support/fake-exchange.ts";

let dataDir: string;

beforeEach(async () => {
  const temp = await createTempDir("handover");
  onTestFinished(() => temp.remove());
  dataDir = temp.path;
});

function createRoom() {
  const runtime = new VirtualRuntime();
  const room = new WaitingRoom(runtime);
  const ends: [guest: string, end: WaitEnd][] = [];
  const leave = new Map<string, () => void>();
  const enter = (guest: string) => {
    void room.wait((run) => leave.set(guest, run)).then((end) => ends.push([guest, end]));
  };
  return { runtime, room, ends, leave, enter };
}

verifies("L24", "who comes before the node serves waits, and is served in order once it does", async () => {
  const { runtime, room, ends, leave, enter } = createRoom();
  for (const guest of ["a", "b", "c"]) enter(guest);
  await runtime.advanceAsync(WAITING_MS - 1);
  leave.get("b")?.();
  expect(room.size).toBe(2);
  room.open();
  enter("d");
  await runtime.advanceAsync(0);
  expect(ends).toEqual([
    ["b", "gone"],
    ["a", "admitted"],
    ["c", "admitted"],
    ["d", "admitted"],
  ]);
  expect(runtime.pendingCount).toBe(0);
});

verifies("L24", "nobody waits longer than the bound, nor do more than the bound", async () => {
  const { runtime, room, ends, enter } = createRoom();
  for (let guest = 0; guest < WAITING_MAX; guest += 1) enter(`g${guest}`);
  enter("one too many");
  await runtime.advanceAsync(0);
  expect(ends).toEqual([["one too many", "turned-away"]]);
  await runtime.advanceAsync(WAITING_MS);
  expect(ends.filter(([, end]) => end === "turned-away").length).toBe(WAITING_MAX + 1);
  expect(room.size).toBe(0);
});

test("a room that closes turns away who waits", async () => {
  const { runtime, room, ends, enter } = createRoom();
  enter("a");
  room.close();
  await runtime.advanceAsync(0);
  expect(ends).toEqual([["a", "turned-away"]]);
});

test("a process is known by its id and its start, and the file is its owner's alone", () => {
  writeProcessFile(dataDir);
  const path = join(dataDir, "process.json");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const written = readProcessFile(dataDir);
  if (written === undefined) throw new Error("nothing was written");
  expect(written.pid).toBe(process.pid);
  expect(processState(written)).toBe("alive");
  expect(processState({ ...written, startedAt: "1" })).toBe("gone");
  expect(processState({ pid: 4_194_305, startedAt: "" })).toBe("gone");
  for (const text of ["", "[]", "null", '{"pid":"7","startedAt":""}', '{"pid":-7,"startedAt":""}']) {
    writeFileSync(path, text);
    expect(readProcessFile(dataDir)).toBeUndefined();
  }
  deleteProcessFile(dataDir);
  expect(existsSync(path)).toBe(false);
  expect(readProcessFile(dataDir)).toBeUndefined();
});

/** Processes that were told to leave. */
const told: number[] = [];

/** This process as the holder of the directory. */
function holdDirectory() {
  const folder = openDataFolder(dataDir, "moor.sqlite");
  told.length = 0;
  const held = { isReleased: false };
  const release = () => {
    if (!held.isReleased) folder.release();
    held.isReleased = true;
  };
  onTestFinished(release);
  return release;
}

const takeIt = (waitMs: number) =>
  takeOver({
    dataDir,
    waitMs,
    tell: (pid) => void told.push(pid),
    runtime: createNodeRuntime(),
    logger: createSilentLogger(),
  });

verifies("L24", "the holder of a directory is told to leave once, and waited for until it has", async () => {
  const release = holdDirectory();
  writeProcessFile(dataDir);
  expect(isDataFolderFree(dataDir)).toBe(false);
  const taken = takeIt(30_000);
  await until(() => told.length > 0, "the word");
  release();
  await within(taken, "the directory");
  expect(told).toEqual([process.pid]);
  expect(isDataFolderFree(dataDir)).toBe(true);
});

test("a holder that does not leave in time keeps the directory, and that is said", async () => {
  holdDirectory();
  writeProcessFile(dataDir);
  await expect(takeIt(0)).rejects.toThrow(`which process ${process.pid} did not leave in time`);
  expect(told).toEqual([process.pid]);
});

verifies(
  "L24",
  "who comes second to a directory that is being taken over says so as soon as the first has it",
  async () => {
    const leaving = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    const left = once(leaving, "exit");
    holdDirectory(); // The first one, as it were.
    writeProcessFile(dataDir, leaving.pid);
    const taken = takeOver({
      dataDir,
      waitMs: 600_000,
      tell: () => leaving.stdin?.end(),
      runtime: createNodeRuntime(),
      logger: createSilentLogger(),
    });
    await expect(within(taken, "the refusal")).rejects.toThrow("which another process has taken over");
    await left;
  },
);

test("a holder that is gone when it is to be told has left", async () => {
  const gone = spawn(process.execPath, ["-e", ""], { stdio: "ignore" });
  await once(gone, "exit");
  expect(() => tellToLeave(gone.pid ?? 0)).not.toThrow();
});

test("a directory that nobody holds needs no taking over, one whose holder is not known is left alone", async () => {
  await takeIt(0);
  holdDirectory();
  await expect(takeIt(0)).rejects.toThrow("and no one says by whom");
  writeProcessFile(dataDir);
  const path = join(dataDir, "process.json");
  const written = readFileSync(path, "utf8");
  writeFileSync(path, written.replace(/"startedAt":"[^"]*"/, '"startedAt":"1"'));
  await expect(takeIt(0)).rejects.toThrow("in use by another process than");
  expect(told).toEqual([]);
});

const OPTIONS = () =>
  ({
    dataDir,
    host: "127.0.0.1",
    runtime: createNodeRuntime(),
    logger: createSilentLogger(),
  }) as unknown as NodeOptions;

const RESPONSE = `/v1/tunnels/tunnel_${"a".repeat(32)}/response`;
const POLL = `/v1/tunnels/tunnel_${"a".repeat(32)}/poll`;

verifies(
  ["T6", "L24"],
  "an agent's answer reaches the process that leaves with its headers and body, and its reply comes back",
  async () => {
    const seen: unknown[] = [];
    const leaving = await openLeavingListener(OPTIONS(), async (exchange) => {
      const body = await exchange.readBody(1_000);
      const text = body.kind === "complete" ? Buffer.from(body.bytes).toString() : body.kind;
      seen.push([
        exchange.method,
        exchange.path,
        exchange.query,
        exchange.requestId,
        exchange.header("x-own"),
        exchange.headerLines("x-request-id"),
        exchange.header("te"),
        text,
      ]);
      exchange.reply(202, { "X-Kept": "yes" }, "taken");
    });
    onTestFinished(() => leaving?.close());
    const exchange = new FakeExchange(
      {
        method: "POST",
        path: RESPONSE,
        query: "a=b",
        rawHeaders: [
          "Host",
          "x",
          "X-Own",
          "1",
          "X-Request-Id",
          "req_1",
          "TE",
          "trailers",
          "Content-Length",
          "4",
        ],
        body: "body",
      },
      "req_1",
    );
    expect(await relayToLeaving(exchange, leavingSocketPath(dataDir))).toBe(true);
    expect(seen).toEqual([["POST", RESPONSE, "a=b", "req_1", "1", ["req_1"], undefined, "body"]]);
    expect([exchange.status, exchange.text, exchange.headers["x-kept"]]).toEqual([202, "taken", "yes"]);
    expect(exchange.headers["connection"]).toBeUndefined();
    expect(exchange.headers["x-request-id"]).toBeUndefined();
  },
);

verifies(
  ["T4", "L24"],
  "a poll is answered from there with commands, and else waits for the process that follows",
  async () => {
    let status = 200;
    const leaving = await openLeavingListener(
      OPTIONS(),
      async (exchange) => void exchange.reply(status, {}, "{}"),
    );
    onTestFinished(() => leaving?.close());
    const poll = async () => {
      const exchange = new FakeExchange({ path: POLL, rawHeaders: ["Host", "x"] }, "req_1");
      return [await relayToLeaving(exchange, leavingSocketPath(dataDir)), exchange.status];
    };
    expect(await poll()).toEqual([true, 200]);
    for (status of [204, 503, 401]) expect(await poll()).toEqual([false, undefined]);
  },
);

test("other requests are none of the leaving process's business, nor is anything once it has gone", async () => {
  const path = leavingSocketPath(dataDir);
  const answer = new FakeExchange({ method: "POST", path: RESPONSE, body: "body" }, "req_1");
  expect(await relayToLeaving(answer, path)).toBe(false);
  const leaving = await openLeavingListener(OPTIONS(), async (exchange) => void exchange.reply(200, {}, ""));
  onTestFinished(() => leaving?.close());
  const call = new FakeExchange({ method: "POST", path: "/v1/mcp/tunnel_x", body: "{}" }, "req_2");
  expect(await relayToLeaving(call, path)).toBe(false);
  expect([answer.status, call.status]).toEqual([undefined, undefined]);
  await leaving?.close();
  expect(await relayToLeaving(answer, path)).toBe(false);
});

test("an answer that the leaving process takes and does not acknowledge is to be delivered again", async () => {
  const server = createServer((request) => void request.socket.destroy());
  const path = leavingSocketPath(dataDir);
  await new Promise<void>((done) => void server.listen(path, done));
  onTestFinished(() => void server.close());
  const exchange = new FakeExchange(
    { method: "POST", path: RESPONSE, rawHeaders: ["Host", "x"], body: "body" },
    "req_1",
  );
  expect(await relayToLeaving(exchange, path)).toBe(true);
  expect([exchange.status, exchange.errorCode, exchange.headers["Retry-After"]]).toEqual([
    503,
    "node_draining",
    "1",
  ]);
});

test("a socket that cannot be made costs the relay, not the leaving", async () => {
  dataDir = join(dataDir, "d".repeat(120));
  expect(await openLeavingListener(OPTIONS(), async () => {})).toBeUndefined();
  chmodSync(join(dataDir, ".."), 0o700);
});
