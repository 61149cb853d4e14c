// Two real nodes whose link is TLS, with certificates that `moor cluster cert` made.

import {
  createTempDir,
  runMoor,
  startCluster,
  startFleet,
  until,
  type Cluster,
  type ClusterNode,
  type Fleet,
  type TempDir,
} from "@moor/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

let certificates: TempDir;
let cluster: Cluster;
let fleet: Fleet;

beforeAll(async () => {
  certificates = await createTempDir("certificates");
  await makeCertificate("ca");
  for (const id of ["n1", "edge"]) await makeCertificate("node", id);
  const certificatesDir = certificates.path;
  cluster = await startCluster({
    directory: "sqlite",
    nodes: [
      { id: "n1", shards: ["s1"], certificatesDir, hasInternalProxy: true },
      { id: "edge", entryMode: "bootstrap", certificatesDir, hasInternalProxy: true },
    ],
  });
  fleet = await startFleet({
    tunnels: await cluster.createTunnels(2),
    endpoints: [cluster.node("edge").endpoint],
  });
});

afterAll(async () => {
  await fleet?.stop();
  await cluster?.stop();
  await certificates?.remove();
});

async function makeCertificate(...args: string[]): Promise<void> {
  const run = await runMoor(["cluster", "cert", ...args, "--dir", certificates.path]);
  if (run.code !== 0) throw new Error(run.stderr);
}

/** Ends the connection between the two nodes; resolves when both have a new one. */
async function renewLink(): Promise<void> {
  const linksMade = (node: ClusterNode) => node.events("peer-up").length;
  const before = cluster.nodes.map(linksMade);
  for (const node of cluster.nodes) node.internalProxy.reset();
  await until(
    () => cluster.nodes.every((node, at) => linksMade(node) > (before[at] ?? 0)),
    "a new link of both nodes",
  );
}

async function expectCallsAnswered(): Promise<void> {
  const run = await fleet.startRun({ callsPerS: 40 });
  await until(() => run.endedCount() >= 40, "40 calls");
  const verdict = await run.finish();
  expect([verdict.failures, verdict.executedTwice]).toEqual([[], 0]);
}

test("P1 P5 · calls and polls of an edge reach the shard of another node over mutual TLS", async () => {
  await expectCallsAnswered();
  expect(cluster.nodes.map((node) => node.events("peer-refused"))).toEqual([[], []]);
});

test("P5 · a new certificate is in use from the next connection on, without a restart", async () => {
  await makeCertificate("node", "n1", "--force");
  const isRead = () => cluster.node("n1").events("peer-certificate-read").length > 0;
  while (!isRead()) await renewLink();
  await expectCallsAnswered();
});

test("P5 · a node whose certificate another authority signed has no link any more, and both say why", async () => {
  await makeCertificate("ca", "--force");
  await makeCertificate("node", "n1", "--force");
  await cluster.node("n1").stop();
  await cluster.node("n1").start();
  const said = (id: string, event: string, what: RegExp) =>
    until(
      () =>
        cluster
          .node(id)
          .events(event)
          .some(({ reason, cause }) => what.test(`${String(reason)} ${String(cause)}`)),
      `${id} to say ${event} ${String(what)}`,
    );
  await said("n1", "peer-refused", /^certificate UNABLE_TO_VERIFY/);
  await said("edge", "peer-unreachable", /^certificate-refused/);
});
