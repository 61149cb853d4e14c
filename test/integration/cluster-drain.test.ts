// A shard drained from another node of a cluster: its boxes are served elsewhere meanwhile, and all are accounted for.

import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { Secret } from "@moor/runtime";
import {
  createTempDir,
  runMoor,
  startCluster,
  startDialling,
  startTcpBalancer,
  until,
  verifies,
  within,
} from "@moor/testkit";
import { startLinkFleet } from "@moor/testkit/link-fleet";
import { plantHomes } from "@moor/testkit/link-homes";
import { judgeReturn } from "@moor/testkit/link-journal";
import { expect, onTestFinished } from "vitest";
import { createHandedNode, eventsOf } from "./handover-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

const BOXES = 60;

describePostgres("a drain in a cluster", (server) => {
  verifies(
    ["L3", "L16", "L24"],
    "ordered at any node, it restarts the shard's; boxes come back to another node or to the new process, none is missing",
    async () => {
      const nodes = [
        { id: "a", shards: ["s1"] },
        { id: "b", shards: ["s2"] },
      ];
      const url = await server().createDatabase(`drain_${process.pid}`);
      const cluster = await startCluster({ nodes, directory: { postgresUrl: url } });
      onTestFinished(() => cluster.stop());
      const [a, b] = [cluster.node("a"), cluster.node("b")];
      const temp = await createTempDir("plant");
      onTestFinished(() => temp.remove());
      const planted = await plantHomes({
        location: { kind: "postgres", url: new Secret(url), dir: temp.path },
        nodeSecretFile: path.join(path.dirname(a.dataDir), "node.secret"),
        count: BOXES,
      });
      const balancer = await startTcpBalancer([b, a].map(({ endpoint }) => Number(new URL(endpoint).port)));
      onTestFinished(() => balancer.close());
      const fleet = await startLinkFleet({
        kind: "library",
        endpoint: balancer.origin.replace("http", "ws"),
        clients: planted.homes,
        serviceKeys: planted.serviceKeys,
        dialsPerS: 100,
        processes: 1,
      });
      onTestFinished(() => fleet.kill());
      await fleet.untilOnline();
      const sinceMs = Math.max(...(await fleet.journal()).map(({ atMs }) => atMs));

      const foretold = await runMoor([
        "drain",
        "s2",
        "--restart",
        "--dry-run",
        "--json",
        "--data",
        a.dataDir,
      ]);
      expect(JSON.parse(foretold.stdout)).toMatchObject({ node: "b", links: BOXES, servedMeanwhile: true });
      const restarted = within(b.process.ended, "node b to leave").then(async (end) => {
        expect(end).toEqual({ kind: "exited", code: 0 });
        await b.start();
      });
      const drained = await runMoor(["drain", "s2", "--restart", "--json", "--data", a.dataDir]);
      expect(drained).toMatchObject({ code: 0 });
      await restarted;
      const report = JSON.parse(drained.stdout) as { readonly back: number; readonly elsewhere: number };
      expect(report).toMatchObject({ node: "b", links: BOXES, closed: BOXES, never: 0, unknown: 0 });
      expect(report.back + report.elsewhere).toBe(BOXES);
      const verdict = async () =>
        judgeReturn(await fleet.journal(), { clients: BOXES, sinceMs, spreadMs: 1_000 });
      await until(async () => (await verdict()).back === BOXES, "everybody to be back");
      expect(await verdict()).toMatchObject({ lost: BOXES, lostBy: { 4503: BOXES } });
      expect(a.events("shard-drain-ordered")).toMatchObject([{ shard: "s2", node: "b" }]);
      expect(b.events("drain-report").length).toBe(1);
    },
    150_000,
  );

  verifies(
    "L24",
    "a node of a shared directory is taken over as one alone: its peers meet the next process, and no dial is refused",
    async () => {
      const url = await server().createDatabase(`take_over_${process.pid}`);
      const env = { MOOR_DATABASE_URL: url };
      expect(await runMoor(["directory", "migrate"], { env })).toMatchObject({ code: 0 });
      const secret = await createTempDir("secret");
      onTestFinished(() => secret.remove());
      const nodeSecretFile = path.join(secret.path, "node.secret");
      await writeFile(nodeSecretFile, randomBytes(32).toString("base64url"), { mode: 0o600 });
      const shared = { directory: { postgres: {} }, nodeSecretFile };
      const node = await createHandedNode(shared, { reusePort: true });
      const peer = await createHandedNode({ ...shared, id: "n2", shards: ["s2"] });
      const first = await node.serve([], { env });
      const other = await peer.serve([], { env });
      await other.stderr.waitFor(/"peer":"n1".*"peer-up"/);
      const dialling = startDialling(node.port, 100);
      const next = await node.serve(["--take-over"], { env });
      expect(await within(first.ended, "the process before to leave")).toEqual({ kind: "exited", code: 0 });
      await until(
        () => other.stderr.lines.filter((line) => /"peer":"n1".*"peer-up"/.test(line)).length > 1,
        "a link to the next process",
      );
      const counts = await dialling.stop();
      expect([counts.refused, counts.turnedAway]).toEqual([0, 0]);
      expect(eventsOf(next)).toContain("taken-over");
    },
    120_000,
  );
});
