// `moor drain`: what it asks, prints and refuses, and how it watches a restart on virtual time.

import type { DrainForecast, DrainReport } from "@moor/server/drains";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { watchRestart } from "../src/drain-watch.ts";
import { RefusedError, UnreachableError } from "../src/exit-code.ts";
import type { NodeJson } from "../src/fleet-client.ts";
import { refusal, startFakeOperator, type Asked, type OperatorReply } from "./fake-operator.ts";
import { runInProcess } from "./run-in-process.ts";

const FORECAST: DrainForecast = {
  node: "n1",
  shards: ["s1", "s2"],
  links: 12_000,
  accept_rate: 1_200,
  is_measured: true,
  spread_ms: 20_000,
  waves: [{ at_ms: 0, links: 12_000 }],
  is_handed_over: false,
  is_served_meanwhile: false,
  gap_ms: 3_000,
};
const REPORT: DrainReport = {
  state: "done",
  node: "n1",
  shards: ["s1", "s2"],
  started_at: "2026-01-01T00:00:00.000Z",
  spread_ms: 20_000,
  waves: 1,
  accept_rate: 1_200,
  links: 12_000,
  closed: 12_000,
  destroyed: 3,
  back: 11_990,
  back_within_spread: 11_950,
  elsewhere: 6,
  never: 4,
  unknown: 0,
  p50_ms: 10_100,
  p95_ms: 19_000,
  max_ms: 31_000,
  down_ms: 1_200,
};
const NODE: NodeJson = {
  id: "n1",
  state: "live",
  roles: ["entry", "shard"],
  shards: ["s1", "s2"],
  internal_url: "",
  incarnation: "old",
  version: "0.1.0",
};

async function run(answer: (asked: Asked) => OperatorReply, ...args: string[]) {
  const operator = await startFakeOperator(answer);
  const { code, stdout, stderr } = await runInProcess(["drain", ...args, ...operator.args]);
  return { code, stdout: stdout.trimEnd(), stderr: stderr.trimEnd(), asked: operator.asked };
}

const forecasting = ({ method }: Asked): OperatorReply =>
  method === "POST" ? [200, { ...FORECAST, ordered: false }] : [200, { nodes: [NODE], next: null }];

verifies("L24", "a dry run shows the plan and how clients would come back, and changes nothing", async () => {
  const { code, stdout, stderr, asked } = await run(
    forecasting,
    "s1",
    "--restart",
    "--dry-run",
    "--spread-ms",
    "9000",
  );
  expect(asked).toMatchObject([
    {
      method: "POST",
      path: "/v1/shards/s1/drain",
      body: { kind: "restart", dry_run: true, spread_ms: 9_000 },
    },
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain("would restart n1, which runs s1, s2");
  expect(stdout).toContain("links        12,000, closed in 20 s");
  expect(stdout).toContain("accept rate  1,200 links/s, as measured");
  expect(stdout).toContain("nobody serves for about 3.0 s; dials are refused");
  expect(stdout).toMatch(/^ +0 s {2} +0$/m);
  expect(stdout).toMatch(/^ +10 s {2}#+ +\d{3}$/m);
  expect(stdout).toMatch(
    /^with the spread {3}peak [\d,]+\/s \(\d\.\d × mean\), p50 .*, dials wait up to \d\.\d s, [\d,]+ dials in vain$/m,
  );
  // Nobody is back faster than the node accepts.
  expect(stdout).toMatch(/^without it {8}peak 1,\d{3}\/s \(2\.\d × mean\), p50 \d\.\d s, p95 1\d s/m);
  expect(stdout).not.toContain("More clients come");
  expect(stderr).toBe("Nothing was changed.");
});

test("a dry run for programs is the plan and the whole forecast", async () => {
  const { stdout } = await run(forecasting, "s1", "--restart", "--dry-run", "--json");
  const json = JSON.parse(stdout) as { arrivals: { spread: { perSecond: number[] } } };
  expect(json).toMatchObject({
    node: "n1",
    acceptRate: 1_200,
    spreadMs: 20_000,
    waves: [{ atMs: 0, links: 12_000 }],
    handedOver: false,
    dryRun: true,
  });
  expect(json.arrivals.spread.perSecond.length).toBeGreaterThan(19);
});

test("more clients than the node can accept at a time are said; a queue that the gap filled is not", async () => {
  const foretell = async (more: Partial<DrainForecast>) => {
    const answer = (): OperatorReply => [200, { ...FORECAST, is_handed_over: true, ...more }];
    return (await run(answer, "s1", "--restart", "--dry-run")).stdout;
  };
  const queued = await foretell({});
  expect(queued).toContain("dials wait in the socket's queue");
  expect(queued).toContain("dials wait up to 3.0 s");
  expect(queued).not.toContain("More clients come");
  expect(await foretell({ accept_rate: 500 })).toContain("More clients come than the node can accept");
});

test("what is not a restart is refused as usage, with what to do instead", async () => {
  for (const args of [["s1"], ["s1", "--move-away"], ["s1", "--restart", "--move-away"]]) {
    const { code, stderr, asked } = await run(() => undefined, ...args);
    expect([code, asked]).toEqual([2, []]);
    expect(stderr).toContain(
      "expected --restart (moving its tenants away is not part of a drain yet: moor move --from s1",
    );
  }
  const { code, stderr } = await run(() => undefined, "s1", "--restart", "--spread-ms", "500");
  expect([code, stderr]).toEqual([2, expect.stringContaining("an integer from 1000 to 60000")]);
});

test("a shard that is not there, or that nobody runs, is refused before anything is ordered", async () => {
  const shards = [{ id: "s3", state: "down", node: "" }];
  const answer = ({ path }: Asked): OperatorReply =>
    path.startsWith("/v1/nodes") ? [200, { nodes: [NODE], next: null }] : [200, { shards, next: null }];
  const unknown = await run(answer, "s9", "--restart");
  expect([unknown.code, unknown.stderr]).toEqual([
    1,
    "moor: refused (shard_not_found): there is no shard s9",
  ]);
  const idle = await run(answer, "s3", "--restart");
  expect([idle.code, idle.stderr]).toEqual([1, "moor: refused (conflict): no node runs s3"]);
  expect(idle.asked.every(({ method }) => method === "GET")).toBe(true);
});

test("a detached order says what goes on; a refused one is the command's refusal", async () => {
  const { code, stdout, stderr, asked } = await run(
    ({ method }) => (method === "POST" ? [200, FORECAST] : forecasting({ method } as Asked)),
    "s1",
    "--restart",
    "--detach",
    "--json",
    "--reason",
    "upgrade",
  );
  expect(code).toBe(0);
  expect(asked.at(-1)).toMatchObject({
    body: { kind: "restart", dry_run: false, reason: "upgrade" },
    actor: "eve",
  });
  expect(JSON.parse(stdout)).toMatchObject({ node: "n1", links: 12_000, ordered: true });
  expect(stderr).toBe("n1 leaves: 12000 links, spread 20000 ms; it runs s1, s2.");
  const refused = await run(
    ({ method }) =>
      method === "POST" ? refusal(503, "node_unreachable") : [200, { nodes: [NODE], next: null }],
    "s1",
    "--restart",
  );
  expect([refused.code, refused.stderr]).toEqual([1, "moor: refused (node_unreachable): node_unreachable"]);
});

verifies("L24", "a watched restart ends with the report of who came back", async () => {
  let looks = 0;
  const answer = ({ method, path }: Asked): OperatorReply => {
    if (method === "POST") return [200, FORECAST];
    if (path.endsWith("/drain")) return [200, REPORT];
    looks += 1;
    return [200, { nodes: [{ ...NODE, incarnation: looks < 2 ? "old" : "new" }], next: null }];
  };
  const people = await run(answer, "s1", "--restart");
  expect(people.code).toBe(0);
  expect(people.stdout).toBe(
    [
      "12000 links were closed in 20 s; 3 of them did not let go and were cut",
      "  back         11990, 11950 of them within the spread",
      "  elsewhere    6",
      "  never        4",
      "  came back    p50 10 s, p95 19 s, last 31 s",
      "  nobody served for 1.2 s",
    ].join("\n"),
  );
  looks = 0;
  const programs = await run(answer, "s1", "--restart", "--json");
  expect(JSON.parse(programs.stdout)).toMatchObject({
    state: "done",
    links: 12_000,
    backWithinSpread: 11_950,
  });
});

interface Scene {
  readonly node?: Partial<NodeJson>;
  readonly report?: Partial<DrainReport>;
  readonly fault?: Error;
}

/** Watches a restart whose world is `scene` at each moment. */
function watching(scene: (atMs: number) => Scene) {
  const runtime = new VirtualRuntime();
  const written: string[] = [];
  const ended = watchRestart(
    { shard: "s1", incarnation: "old", forecast: FORECAST },
    {
      client: () => {
        const { node, report, fault } = scene(runtime.monotonicMs());
        if (fault !== undefined) throw fault;
        return {
          listNodes: async () => ({ items: [{ ...NODE, ...node }], next: null }),
          drainReport: async () => {
            if (report === undefined) throw new RefusedError("not_found", "");
            return { ...REPORT, ...report };
          },
        };
      },
      runtime,
      output: { isTerminal: false, write: (text) => void written.push(text) },
    },
  );
  const end = ended.then(
    (value) => ({ value, atMs: runtime.monotonicMs() }),
    (error: unknown) => ({ error, atMs: runtime.monotonicMs() }),
  );
  return { runtime, written, end };
}

test("the watch follows the node out, away and back, whoever is asked", async () => {
  const away = new UnreachableError("away", "");
  const { runtime, written, end } = watching((atMs) => {
    if (atMs < 2_000) return {};
    if (atMs < 3_000) return { node: { state: "left" } };
    if (atMs < 4_000) return { fault: away };
    const report = atMs < 9_000 ? { state: "watching" as const, back: 100, elsewhere: 0, never: 400 } : {};
    return { node: { incarnation: "new" }, report };
  });
  await runtime.advanceAsync(20_000);
  expect(await end).toMatchObject({ value: REPORT });
  expect(written).toEqual([
    "n1 finishes its calls and closes 12000 links\n",
    "n1 has left; its next process is waited for\n",
    "n1 serves again; 100 of 500 clients are back\n",
    "n1 serves again; 11996 of 12000 clients are back\n",
  ]);
});

test("a node without links is back without a report", async () => {
  const { runtime, end } = watching((atMs) => (atMs < 1_000 ? {} : { node: { incarnation: "new" } }));
  await runtime.advanceAsync(5_000);
  expect(await end).toMatchObject({ value: undefined, atMs: 1_000 });
});

test("a node that stays away is given up after two minutes, a refusal at once", async () => {
  const gone = watching((atMs) => (atMs < 60_000 ? {} : { fault: new UnreachableError("away", "") }));
  await gone.runtime.advanceAsync(200_000);
  const { error, atMs } = (await gone.end) as { error: Error; atMs: number };
  expect(error.message).toContain("n1, which runs s1, did not come back");
  expect(atMs).toBeGreaterThan(179_000);
  expect(atMs).toBeLessThan(182_000);
  const refused = watching(() => ({ fault: new RefusedError("unauthorized", "") }));
  await refused.runtime.advanceAsync(1_000);
  expect(await refused.end).toMatchObject({ error: { code: "unauthorized" } });
});
