// docs/protocol/link-states.md and LINK_TROUBLE say the same, row by row, both ways.
// Spec: L15.

import { LINK_TROUBLE, type LinkTroubleRow } from "@moor/protocol";
import { readMarkdown, readTable } from "./markdown-files.ts";

const FILE = "docs/protocol/link-states.md";
const COLUMNS = ["Why", "State", "Means"] as const;

/** One line for each row that only one side has. */
export function findLinkStateProblems(): string[] {
  const rows = readTable(readMarkdown(FILE).text, COLUMNS);
  const documented = rows.map((row) => COLUMNS.map((column) => row[column] ?? "").join(" | "));
  const coded = Object.entries<LinkTroubleRow>(LINK_TROUBLE).map(([code, { isRefusal, summary }]) =>
    [`\`${code}\``, isRefusal ? "refused" : "reconnecting", summary].join(" | "),
  );
  return [
    ...coded.filter((row) => !documented.includes(row)).map((row) => `${FILE} lacks: ${row}`),
    ...documented.filter((row) => !coded.includes(row)).map((row) => `${FILE} has, the code not: ${row}`),
  ];
}
