// One node's processes following each other under load: the port does not go dark, and no call is lost.

import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import path from "node:path";
import {
  createTunnel,
  holdSocket,
  runMoor,
  startDialling,
  startMoorAgent,
  until,
  verifies,
  within,
  type FleetTunnel,
} from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { callOnce, startGatedServer } from "./cluster-kit.ts";
import { createHandedNode, eventsOf, type HandedNode } from "./handover-kit.ts";

const DIALS_PER_S = 300;
const ROUNDS = 3;
const DONE = { kind: "exited", code: 0 };

verifies(
  "L24",
  "a node restarted behind an inherited socket refuses and drops no connection: who dials meanwhile waits and is served",
  async () => {
    const socket = holdSocket();
    onTestFinished(() => socket.close());
    const node = await createHandedNode({}, { fd: 3 });
    const inherited = { inherited: [socket.fd] };
    let running = await node.serve([], inherited);
    expect(JSON.parse(running.stdout.text())).toMatchObject({ endpoint: `http://127.0.0.1:${socket.port}` });
    const dialling = startDialling(socket.port, DIALS_PER_S);
    for (let round = 0; round < ROUNDS; round += 1) {
      await until(() => dialling.counts.served >= (round + 1) * DIALS_PER_S, "dials to be served");
      running.signal("SIGTERM");
      expect(await within(running.ended, "the node to leave")).toEqual(DONE);
      running = await node.serve([], inherited);
    }
    const counts = await dialling.stop();
    expect(counts).toEqual({ ...counts, served: counts.dialled, turnedAway: 0, refused: 0, reset: 0 });
  },
  120_000,
);

test("a thousand dials fit into the queue of an inherited socket while nobody accepts", async () => {
  const socket = holdSocket();
  onTestFinished(() => socket.close());
  const node = await createHandedNode({}, { fd: 3 });
  const running = await node.serve([], { inherited: [socket.fd] });
  running.signal("SIGTERM");
  expect(await within(running.ended, "the node to leave")).toEqual(DONE);
  const waiting = Array.from({ length: 1_000 }, () => connect({ port: socket.port, host: "127.0.0.1" }));
  onTestFinished(() => waiting.forEach((dial) => dial.destroy()));
  await within(Promise.all(waiting.map((dial) => once(dial, "connect"))), "every dial to be queued");
});

verifies(
  "T10",
  "a tunnel with open access is served on an inherited socket that only this machine reaches, whatever the configured host",
  async () => {
    const codeOf = async (address: string) => {
      const socket = holdSocket(address);
      onTestFinished(() => socket.close());
      const node = await createHandedNode({}, { fd: 3 });
      await node.serve([], { inherited: [socket.fd] });
      const { id } = await createTunnel(node, ["--access", "open"]);
      const answer = await fetch(`http://127.0.0.1:${socket.port}/v1/mcp/${id}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream" },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
      return ((await answer.json()) as { error: { code: string } }).error.code;
    };
    expect(await codeOf("127.0.0.1")).toBe("tunnel_client_not_seen");
    expect(await codeOf("0.0.0.0")).toBe("host_not_allowed");
  },
);

test("systemd's own variables name the socket", async () => {
  const socket = holdSocket();
  onTestFinished(() => socket.close());
  const node = await createHandedNode();
  const running = await node.serve([], {
    inherited: [socket.fd],
    env: { LISTEN_FDS: "1", LISTEN_FDNAMES: "moor.socket" },
    launcher: ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"],
  });
  expect((await fetch(`http://127.0.0.1:${socket.port}/readyz`)).status).toBe(200);
  expect(await running.stop()).toEqual(DONE);
});

verifies(
  "L24",
  "a process that takes over listens before the one before it has left: no dial is refused, and none waits in vain",
  async () => {
    const node = await createHandedNode({}, { reusePort: true });
    let running = await node.serve();
    const dialling = startDialling(node.port, DIALS_PER_S);
    for (let round = 0; round < ROUNDS; round += 1) {
      await until(() => dialling.counts.served >= (round + 1) * DIALS_PER_S, "dials to be served");
      const next = await node.serve(["--take-over"]);
      expect(await within(running.ended, "the process before to leave")).toEqual(DONE);
      running = next;
    }
    const counts = await dialling.stop();
    const migrates = await readFile("/proc/sys/net/ipv4/tcp_migrate_req", "utf8").catch(() => "none");
    console.log(
      `${ROUNDS} take-overs under ${DIALS_PER_S} dials/s, tcp_migrate_req ${migrates.trim()}: ${JSON.stringify(counts)}`,
    );
    expect([counts.refused, counts.turnedAway]).toEqual([0, 0]);
    // What a port that two processes share drops as one leaves it depends on the system; at most a few dials each time.
    expect(counts.reset).toBeLessThanOrEqual(ROUNDS * 0.1 * DIALS_PER_S);
    expect(counts.served).toBe(counts.dialled - counts.reset);
    if (migrates.trim() === "1") expect(counts.reset).toBe(0);
  },
  120_000,
);

/** A tunnel on the node, with an agent that serves one call at a time. */
async function connectAgent(node: HandedNode, mcp: string): Promise<FleetTunnel> {
  const tunnel = await (await node.operator()).createTunnel();
  const args = ["--concurrency=1"];
  const agent = await startMoorAgent({ endpoint: node.endpoint, tunnel, mcp, args });
  onTestFinished(async () => void (await agent.kill()));
  return tunnel;
}

verifies(
  ["T4", "T6", "T11", "L24"],
  "calls that the leaving process holds, handed out or queued, are answered through the one that follows; later ones wait for it",
  async () => {
    const node = await createHandedNode({}, { reusePort: true });
    const mcp = await startGatedServer();
    const first = await node.serve(["--log-level=debug"]);
    const tunnel = await connectAgent(node, mcp.url);
    const held = [callOnce(node.endpoint, tunnel), callOnce(node.endpoint, tunnel)];
    await mcp.untilExecuted(1);
    await until(async () => (await queuedOrHanded(node)) === 2, "both calls to be held");
    const second = await node.start(["--take-over"]);
    await second.stderr.waitFor('"taking-over"');
    await first.stderr.waitFor('"node-leaving"');
    const late = callOnce(node.endpoint, tunnel);
    mcp.open();
    const endings = await within(Promise.all([...held, late]), "every call to end");
    expect(endings.map(({ kind }) => kind)).toEqual(["answered", "answered", "answered"]);
    expect(await within(first.ended, "the process before to leave")).toEqual(DONE);
    await second.stdout.waitFor('"ready"');
    expect(new Set(mcp.executed).size).toBe(mcp.executed.length);
    expect(mcp.executed.length).toBe(3);
    expect(eventsOf(second)).toEqual(["taking-over", "taken-over", "node-ready"]);
    expect(existsSync(path.join(node.dataDir, "leaving.sock"))).toBe(false);
  },
  90_000,
);

verifies(
  "L24",
  "of two processes that take over at once one serves and one says so and ends; neither costs a call that is held",
  async () => {
    const node = await createHandedNode({}, { reusePort: true });
    const mcp = await startGatedServer();
    const first = await node.serve();
    const tunnel = await connectAgent(node, mcp.url);
    const held = callOnce(node.endpoint, tunnel);
    await mcp.untilExecuted(1);
    const rivals = await Promise.all([node.start(["--take-over"]), node.start(["--take-over"])]);
    await Promise.all(rivals.map(({ stderr }) => stderr.waitFor('"taking-over"')));
    await first.stderr.waitFor('"node-leaving"');
    mcp.open();
    expect((await within(held, "the call to end")).kind).toBe("answered");
    expect(await within(first.ended, "the process before to leave")).toEqual(DONE);
    const ends = rivals.map(async (rival) => ({ rival, end: await rival.ended }));
    const { rival: loser, end } = await within(Promise.race(ends), "one of the two to end", 30_000);
    expect([end, loser.stderr.text()]).toEqual([
      { kind: "exited", code: 2 },
      expect.stringMatching(/another (moor )?process (has taken over|is using)/),
    ]);
    const winner = rivals.find((rival) => rival !== loser);
    await winner?.stdout.waitFor('"ready"');
    expect((await fetch(`${node.endpoint}/readyz`)).status).toBe(200);
    expect(await winner?.stop()).toEqual(DONE);
  },
  90_000,
);

/** How many calls the node's process holds. */
async function queuedOrHanded(node: HandedNode): Promise<number> {
  const { text } = await (await node.operator()).demand<{ text: string }>("GET", "/metrics");
  return Number(/^moor_calls_held (\d+)$/m.exec(text)?.[1]);
}

test("with nobody to take over from, a node just starts; told to leave, it deletes what it wrote down", async () => {
  const node = await createHandedNode({}, { reusePort: true });
  const running = await node.serve(["--take-over"]);
  expect(eventsOf(running)).toEqual(["nothing-to-take-over", "node-ready"]);
  const written: unknown = JSON.parse(await readFile(path.join(node.dataDir, "process.json"), "utf8"));
  expect(written).toMatchObject({ pid: running.pid });
  expect(await running.stop()).toEqual(DONE);
  expect(existsSync(path.join(node.dataDir, "process.json"))).toBe(false);
});

test("a directory whose holder is not who it says, or says nothing, is not taken over, and nobody is signalled", async () => {
  const node = await createHandedNode({}, { reusePort: true });
  const running = await node.serve();
  const file = path.join(node.dataDir, "process.json");
  const written = await readFile(file, "utf8");
  for (const [content, said] of [
    [JSON.stringify({ pid: process.pid, startedAt: "1" }), `in use by another process than ${process.pid}`],
    ["{}", "no one says by whom"],
  ] as const) {
    await writeFile(file, content);
    const refused = await node.start(["--take-over"]);
    expect(await within(refused.ended, "the second process to end")).toEqual({ kind: "exited", code: 2 });
    expect(refused.stderr.text()).toContain(said);
  }
  await writeFile(file, written);
  expect((await fetch(`${node.endpoint}/readyz`)).status).toBe(200);
  expect(await running.stop()).toEqual(DONE);
});

test("what cannot be taken over is refused as configuration before anything is opened", async () => {
  const node = await createHandedNode();
  const refused = await node.start(["--take-over"]);
  expect(await within(refused.ended, "its end")).toEqual({ kind: "exited", code: 2 });
  expect(refused.stderr.text()).toContain(
    "--take-over: got public.reusePort false, expected public.reusePort true",
  );
  const running = await node.serve();
  const sharing = await node.start(["--take-over", "--public-reuse-port=true"]);
  expect(await within(sharing.ended, "its end")).toEqual({ kind: "exited", code: 2 });
  expect(sharing.stderr.text()).toContain("unless that process is this user's and has public.reusePort too");
  expect(await running.stop()).toEqual(DONE);
});

verifies(
  "L24",
  "moor drain --restart ends the node, which its supervisor starts anew, and tells that it is back",
  async () => {
    const node = await createHandedNode();
    const first = await node.serve();
    const foretold = await runMoor(["drain", "s1", "--restart", "--dry-run", "--data", node.dataDir]);
    expect([foretold.code, foretold.stdout]).toEqual([
      0,
      expect.stringContaining("would restart n1, which runs s1"),
    ]);
    const supervised = within(first.ended, "the ordered end").then(async (end) => {
      expect(end).toEqual(DONE);
      return node.serve();
    });
    const drained = await runMoor(["drain", "s1", "--restart", "--reason=test", "--data", node.dataDir]);
    expect([drained.code, drained.stdout]).toEqual([0, "n1 serves again; it had no links"]);
    expect(eventsOf(first)).toContain("drain-ordered");
    await (await supervised).stop();
  },
);
