// `npm run bench`: calls, commands and memory, Moor beside its yardsticks, in one run on one machine. About five minutes.
// `-- --quick` takes shorter samples. The full run leaves docs/evidence/bench.json and bench.md; `-- --out DIR` puts
// them elsewhere.

import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseFlags } from "../../scripts/parse-flags.ts";
import { benchCalls } from "./call-bench.ts";
import { benchCommands } from "./command-bench.ts";
import { benchMemory } from "./memory-bench.ts";
import { benchOwners } from "./owner-bench.ts";
import { createReport, renderReport, type BenchReport } from "./report.ts";
import { runMoveRate } from "../prove/move-rate-scenario.ts";
import { postgresMissing } from "@moor/testkit/postgres-binaries";

const flags = parseFlags("npm run bench [-- --quick --out DIR]", {
  quick: { type: "boolean", default: false },
  out: { type: "string" },
});
const isQuick = flags.quick;
const evidenceDir = fileURLToPath(new URL("../../docs/evidence", import.meta.url));
const outDir = flags.out ?? (isQuick ? undefined : evidenceDir);

const calls = await benchCalls({
  concurrencies: [1, 10, 100],
  warmUpMs: isQuick ? 500 : 2_000,
  measuredMs: isQuick ? 1_000 : 5_000,
  report: ({ route, concurrency, callsPerSecond }) =>
    console.error(`${route}, ${concurrency} callers: ${Math.round(callsPerSecond)} calls/s`),
});
console.error("owners: calls whose entry is the owner's node, and not");
const owners = await benchOwners({
  concurrencies: [1, 10, 100],
  warmUpMs: isQuick ? 500 : 2_000,
  measuredMs: isQuick ? 1_000 : 5_000,
});
console.error("moves: one by one, eight at a time, by a job");
const directories =
  postgresMissing() === undefined ? (["sqlite", "postgres"] as const) : (["sqlite"] as const);
const moves: BenchReport["moves"][number][] = [];
for (const directory of directories) {
  moves.push({ directory, ...(await runMoveRate(directory, isQuick ? 500 : 5_000)) });
}
console.error("commands: app → box → app over links, owner here and elsewhere");
const commands =
  postgresMissing() === undefined
    ? await benchCommands({
        concurrencies: [1, 10, 50],
        warmUpMs: isQuick ? 500 : 2_000,
        measuredMs: isQuick ? 1_000 : 5_000,
      })
    : [];
console.error("memory: creating tunnels, parking polls");
const memory = await benchMemory(
  isQuick ? { tunnels: 2_000, polls: 1_000 } : { tunnels: 20_000, polls: 5_000 },
);

const report = createReport({ calls, owners, moves, commands, memory });
const text = renderReport(report);
console.log(`\n${text}`);
if (outDir !== undefined) {
  mkdirSync(outDir, { recursive: true });
  writeFileSync(path.join(outDir, "bench.json"), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(path.join(outDir, "bench.md"), `# npm run bench\n\n${text}\n`);
}
const errors = [...calls, ...owners, ...commands].reduce((sum, figures) => sum + figures.errors, 0);
if (errors > 0) {
  console.error(`${errors} calls and commands were not answered as they should be`);
  process.exitCode = 1;
}
