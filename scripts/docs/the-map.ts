// THE MAP of ARCHITECTURE.md: feature → spec ids → source file → test. It must name what is there, and all that is due.

import { existsSync } from "node:fs";
import { expandIds, readNotYetDueIds, readSpecIds } from "../spec-ids.ts";
import { readMarkdown, readTable, ROOT } from "./markdown-files.ts";

const COLUMNS = ["Feature", "Spec", "Source", "Test"] as const;

/** One line for each file that is missing, id that is unknown, and due id that no row names. */
export function findMapProblems(): string[] {
  const rows = readTable(readMarkdown("ARCHITECTURE.md").text, COLUMNS);
  if (rows.length === 0) return [`ARCHITECTURE.md: no table with the columns ${COLUMNS.join(", ")}`];
  const known = new Set(readSpecIds());
  const named = new Set<string>();
  const problems: string[] = [];
  for (const row of rows) {
    const where = `ARCHITECTURE.md, "${row.Feature ?? ""}"`;
    for (const id of expandIds(row.Spec ?? "")) {
      named.add(id);
      if (!known.has(id)) problems.push(`${where}: docs/protocol has no ${id}`);
    }
    for (const column of ["Source", "Test"]) {
      const files = [...(row[column] ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");
      if (files.length === 0) problems.push(`${where}: no file in the column ${column}`);
      for (const file of files) if (!existsSync(ROOT + file)) problems.push(`${where}: ${file} is not there`);
    }
  }
  const notYetDue = readNotYetDueIds();
  for (const id of known) {
    if (!notYetDue.includes(id) && !named.has(id)) problems.push(`ARCHITECTURE.md: no row names ${id}`);
  }
  return problems;
}
