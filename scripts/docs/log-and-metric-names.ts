// The pages on logs and metrics name what the sources write: every event but debug ones, every metric, and no others.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { readMarkdown, readTable, ROOT } from "./markdown-files.ts";

const LOGS = "docs/operations/read-the-logs.md";
const METRICS = "docs/operations/read-the-metrics.md";
const METRICS_SOURCE = "packages/server/src/operator/metrics.ts";
const PACKAGES = ["cli", "client", "server"];

/** One line for each name that only the page or only the sources have. */
export function findNameProblems(): string[] {
  const source = readSources();
  const logs = readMarkdown(LOGS).text;
  const metrics = readMarkdown(METRICS).text;
  const events = matches(source, /\.(?:error|warn|info)\(\s*"([a-z]+(?:-[a-z]+)+)"/g);
  const counted = matches(readFileSync(ROOT + METRICS_SOURCE, "utf8"), /"(moor_[a-z_]+[a-z])"/g);
  return [
    ...events.filter((event) => !logs.includes(`\`${event}\``)).map((event) => `${LOGS} lacks ${event}`),
    ...tableNames(logs, ["Event", "Level", "When"])
      .filter((name) => !source.includes(`"${name}"`))
      .map((name) => `${LOGS} has ${name}, the sources do not`),
    ...counted.filter((name) => !metrics.includes(name)).map((name) => `${METRICS} lacks ${name}`),
    ...tableNames(metrics, ["Metric", "Kind", "What it says"])
      .filter((name) => !name.endsWith("_") && !counted.includes(name))
      .map((name) => `${METRICS} has ${name}, the sources do not`),
  ];
}

/** Names in code spans of the first column, of every table with these headings; labels are left off. */
function tableNames(text: string, columns: readonly [string, ...string[]]): string[] {
  const [first] = columns;
  const sections = text.split(/^(?=## )/m);
  const cells = sections.flatMap((section) => readTable(section, columns)).map((row) => row[first] ?? "");
  return cells.flatMap((cell) => matches(cell, /`([a-z][a-z_-]*)/g));
}

function matches(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ""))];
}

function readSources(): string {
  return PACKAGES.map((name) => path.join(ROOT, "packages", name, "src"))
    .flatMap((dir) =>
      readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
        .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "utf8")),
    )
    .join("\n");
}
