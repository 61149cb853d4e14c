// `npm run prove`: what Moor promises about moves, outages and size, shown with real processes and judged by ledgers.
// All of it takes about half an hour. `-- NAME…` runs only those scenarios, `-- --list` names them, `-- --quick` takes
// seconds instead of minutes. A full run of everything leaves docs/evidence/prove.json and prove.md; `-- --out DIR` puts
// them elsewhere, and `--update` with names puts their new results in the place of the old ones. Exit code 0 only if every claim was kept.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseFlagsAndNames } from "../../scripts/parse-flags.ts";
import { postgresMissing } from "@moor/testkit/postgres-binaries";
import {
  createProveReport,
  isProved,
  renderClaim,
  renderProveReport,
  replaceEntries,
  type ProveEntry,
  type ScenarioEnd,
} from "./prove-report.ts";
import { FULL_PACE, QUICK_PACE, type Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const USAGE = "npm run prove [-- [NAME…] [--list] [--quick] [--out DIR] [--update]]";
const { values, positionals } = parseFlagsAndNames(USAGE, {
  quick: { type: "boolean", default: false },
  list: { type: "boolean", default: false },
  out: { type: "string" },
  update: { type: "boolean", default: false },
});
const pace = values.quick ? QUICK_PACE : FULL_PACE;

async function runScenario(scenario: Scenario): Promise<ScenarioEnd> {
  const missing = scenario.needsPostgres ? postgresMissing() : undefined;
  if (missing !== undefined) return { kind: "skipped", why: missing };
  const startMs = performance.now();
  try {
    const result = await scenario.run(pace);
    return { kind: "ran", tookMs: Math.round(performance.now() - startMs), ...result };
  } catch (error) {
    return { kind: "failed", why: error instanceof Error ? error.message : String(error) };
  }
}

function printEnd(end: ScenarioEnd): void {
  if (end.kind !== "ran") return console.log(`  ${end.kind}: ${end.why}`);
  for (const claim of end.claims) console.log(renderClaim(claim));
  for (const [figure, value] of Object.entries(end.figures)) console.log(`          ${figure}: ${value}`);
}

function chooseScenarios(): readonly Scenario[] {
  const unknown = positionals.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    console.error(`no such scenario: ${unknown.join(", ")}; --list names them`);
    process.exit(2);
  }
  return positionals.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => positionals.includes(name));
}

function readReport(dir: string): readonly ProveEntry[] {
  return (JSON.parse(readFileSync(path.join(dir, "prove.json"), "utf8")) as { entries: ProveEntry[] })
    .entries;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));
const chosen = chooseScenarios();
if (values.list) {
  for (const { name, title } of chosen) console.log(`${name.padEnd(36)} ${title}`);
} else {
  const entries: ProveEntry[] = [];
  for (const scenario of chosen) {
    console.log(`\n${scenario.title} (${scenario.name})`);
    const end = await runScenario(scenario);
    printEnd(end);
    entries.push({ name: scenario.name, title: scenario.title, ranAt: new Date().toISOString(), end });
  }
  const evidenceDir = fileURLToPath(new URL("../../docs/evidence", import.meta.url));
  const before = values.update ? readReport(values.out ?? evidenceDir) : [];
  const report = createProveReport(replaceEntries(before, entries), values.quick ? "quick" : "full");
  const isWhole = values.update || report.entries.length === SCENARIOS.length;
  const outDir = values.out ?? (isWhole && !values.quick ? evidenceDir : undefined);
  if (outDir !== undefined) {
    mkdirSync(outDir, { recursive: true });
    writeFileSync(path.join(outDir, "prove.json"), `${JSON.stringify(report, null, 2)}\n`);
    writeFileSync(path.join(outDir, "prove.md"), `${renderProveReport(report)}\n`);
  }
  console.log(isProved(report) ? "\nEvery claim was kept." : "\nNot every claim was kept.");
  process.exitCode = isProved(report) ? 0 : 1;
}
