// What `npm run prove` leaves: JSON for comparison, a table for people.

import { cpus, totalmem } from "node:os";
import type { Claim, ScenarioResult } from "./scenario.ts";

/** How one scenario ended. */
export type ScenarioEnd =
  | (ScenarioResult & { readonly kind: "ran"; readonly tookMs: number })
  | { readonly kind: "skipped"; readonly why: string }
  | { readonly kind: "failed"; readonly why: string };

export interface ProveEntry {
  readonly name: string;
  readonly title: string;
  /** When it ended, RFC 3339. */
  readonly ranAt?: string;
  readonly end: ScenarioEnd;
}

/** The report as JSON is written from. */
export interface ProveReport {
  readonly machine: Readonly<Record<string, string | number>>;
  readonly pace: "full" | "quick";
  readonly entries: readonly ProveEntry[];
}

/** Puts the scenarios together with what the machine is. */
export function createProveReport(entries: readonly ProveEntry[], pace: ProveReport["pace"]): ProveReport {
  const machine = {
    node: process.version,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    date: new Date().toISOString().slice(0, 10),
  };
  return { machine, pace, entries };
}

/** The scenarios of an earlier report, those that ran anew in the place of the old ones. */
export function replaceEntries(
  before: readonly ProveEntry[],
  anew: readonly ProveEntry[],
): readonly ProveEntry[] {
  const kept = before.map((entry) => anew.find(({ name }) => name === entry.name) ?? entry);
  return [...kept, ...anew.filter(({ name }) => !before.some((entry) => entry.name === name))];
}

/** Whether every claim of every scenario that ran was kept, and none failed to run. */
export function isProved({ entries }: ProveReport): boolean {
  return entries.every(({ end }) => {
    return end.kind === "ran" ? end.claims.every(({ isKept }) => isKept) : end.kind === "skipped";
  });
}

/** The report as Markdown. */
export function renderProveReport(report: ProveReport): string {
  const { machine, pace, entries } = report;
  const head = `Node ${machine["node"]}, ${machine["cores"]} cores (${machine["cpu"]}), ${machine["memoryGiB"]} GiB`;
  return [
    `# npm run prove`,
    "",
    `${head}, ${machine["date"]}, ${pace} pace`,
    "",
    ...entries.flatMap(renderEntry),
  ]
    .join("\n")
    .trimEnd();
}

function renderEntry({ name, title, end }: ProveEntry): string[] {
  const lines = [`## ${title}`, "", `\`npm run prove -- ${name}\``, ""];
  switch (end.kind) {
    case "skipped":
    case "failed":
      return [...lines, `${end.kind}: ${end.why}`, ""];
    case "ran":
      return [
        ...lines,
        ...table(["claim", "kept", "seen"], end.claims.map(claimRow)),
        "",
        ...table(
          ["figure", "value"],
          Object.entries(end.figures).map(([key, value]) => [key, String(value)]),
        ),
        "",
      ];
  }
}

/** One line for the terminal. */
export function renderClaim(claim: Claim): string {
  return `  ${claim.isKept ? "kept  " : "BROKEN"}  ${claim.claim} (${claim.seen})`;
}

function claimRow({ claim, isKept, seen }: Claim): string[] {
  return [claim, isKept ? "yes" : "**no**", seen];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const cells = [head, head.map(() => "---"), ...rows];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  return cells.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`);
}
