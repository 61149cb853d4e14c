// Restarts of a node that holds links, with boxes by the client library: who is closed how, who comes back, what is reported.

import path from "node:path";
import { holdSocket, runMoor, until, verifies, within, type RunningProcess } from "@moor/testkit";
import { startLinkFleet, type LinkFleet } from "@moor/testkit/link-fleet";
import { plantHomes } from "@moor/testkit/link-homes";
import { judgeReturn, type ReturnVerdict } from "@moor/testkit/link-journal";
import { expect, onTestFinished } from "vitest";
import { createHandedNode, type HandedNode } from "./handover-kit.ts";

const BOXES = 120;
const SPREAD_MS = 2_000;
const DONE = { kind: "exited", code: 0 };

/** Homes on the node, whose boxes begin to dial; `serve` starts a process of the node. */
async function linkBoxes(
  node: HandedNode,
  port: number,
  serve: () => Promise<RunningProcess>,
): Promise<{ readonly fleet: LinkFleet; readonly running: RunningProcess; readonly sinceMs: number }> {
  // The first start founds the directory, and gives it the shard that homes are placed on.
  await (await serve()).stop();
  const planted = await plantHomes({
    location: { kind: "sqlite", dir: node.dataDir },
    nodeSecretFile: path.join(node.dataDir, "node.secret"),
    count: BOXES,
  });
  const running = await serve();
  const fleet = await startLinkFleet({
    kind: "library",
    endpoint: `ws://127.0.0.1:${port}`,
    clients: planted.homes,
    serviceKeys: planted.serviceKeys,
    dialsPerS: 200,
    processes: 1,
  });
  onTestFinished(() => fleet.kill());
  await fleet.untilOnline();
  const first = await fleet.journal();
  return { fleet, running, sinceMs: Math.max(...first.map(({ atMs }) => atMs)) };
}

/** How everybody came back; waits until they are. */
async function returnOf(fleet: LinkFleet, sinceMs: number): Promise<ReturnVerdict> {
  const verdict = async () =>
    judgeReturn(await fleet.journal(), { clients: BOXES, sinceMs, spreadMs: SPREAD_MS });
  await until(async () => (await verdict()).back === BOXES, "everybody to be back");
  return verdict();
}

verifies(
  ["L3", "L16", "L24"],
  "behind an inherited socket every box is told the spread, dials once, and is back; the report counts them all",
  async () => {
    const socket = holdSocket();
    onTestFinished(() => socket.close());
    const node = await createHandedNode({}, { fd: 3 });
    const serve = () => node.serve([], { inherited: [socket.fd] });
    const { fleet, running, sinceMs } = await linkBoxes(node, socket.port, serve);
    const restarted = within(running.ended, "the ordered end").then((end) => {
      expect(end).toEqual(DONE);
      return serve();
    });
    const args = ["drain", "s1", "--restart", `--spread-ms=${SPREAD_MS}`, "--json", "--data", node.dataDir];
    const drained = await runMoor(args);
    expect(drained).toMatchObject({ code: 0 });
    const verdict = await returnOf(fleet, sinceMs);
    expect(verdict).toMatchObject({ lost: BOXES, lostBy: { 4503: BOXES }, dials: BOXES, failedDials: 0 });
    const report = JSON.parse(drained.stdout) as Record<string, number>;
    expect(report).toMatchObject({
      state: "done",
      links: BOXES,
      closed: BOXES,
      destroyed: 0,
      spreadMs: SPREAD_MS,
      back: BOXES,
      elsewhere: 0,
      never: 0,
      unknown: 0,
    });
    expect(report["p50Ms"]).toBeLessThanOrEqual(report["maxMs"] ?? 0);
    await (await restarted).stop();
  },
  120_000,
);

verifies(
  ["L3", "L24"],
  "a process that takes over has the boxes wait for it: all are back, and the next process counts them",
  async () => {
    const node = await createHandedNode({}, { reusePort: true });
    const { fleet, running, sinceMs } = await linkBoxes(node, node.port, () => node.serve());
    const next = await node.serve(["--take-over"]);
    expect(await within(running.ended, "the process before to leave")).toEqual(DONE);
    const verdict = await returnOf(fleet, sinceMs);
    expect(verdict).toMatchObject({ lost: BOXES, lostBy: { 4503: BOXES } });
    const line = await next.stderr.waitFor('"drain-report"');
    expect(JSON.parse(line)).toMatchObject({
      links: BOXES,
      closed: BOXES,
      back: BOXES,
      never: 0,
      unknown: 0,
    });
    await next.stop();
  },
  120_000,
);

verifies(
  ["L14", "L15", "L24"],
  "a node alone that is stopped closes its boxes with 4503 before it ends; refused dials bring them back all the same",
  async () => {
    const node = await createHandedNode();
    const { fleet, running, sinceMs } = await linkBoxes(node, node.port, () => node.serve());
    running.signal("SIGTERM");
    expect(await within(running.ended, "the node to leave")).toEqual(DONE);
    const closed = JSON.parse(await running.stderr.waitFor('"drain-links-closed"')) as unknown;
    expect(closed).toMatchObject({ closed: BOXES, destroyed: 0 });
    await until(async () => (await fleet.countOnline()) === 0, "every link to have ended");
    const next = await node.serve();
    const verdict = await returnOf(fleet, sinceMs);
    expect(verdict).toMatchObject({ lost: BOXES, lostBy: { 4503: BOXES } });
    await next.stderr.waitFor('"drain-report"');
    await next.stop();
  },
  120_000,
);
