// docs/protocol/errors.md and ERROR_TABLE say the same, row by row, both ways.
// Spec: T3.

import { ERROR_TABLE, type ErrorRow, type RetryVerdict } from "@moor/protocol";
import { readMarkdown, readTable } from "./markdown-files.ts";

const FILE = "docs/protocol/errors.md";
const COLUMNS = ["Code", "Status", "Type", "Retry", "Meaning", "Spec"] as const;

/** How the document words each verdict. */
const RETRY_WORDS: Readonly<Record<RetryVerdict, string>> = {
  never: "no",
  backoff: "after a wait",
  now: "at once",
  elsewhere: "elsewhere",
};

/** The rows of the table as the code has them, as Markdown. */
export function renderErrorRows(): string[] {
  return Object.entries<ErrorRow>(ERROR_TABLE).map(([code, row]) => {
    const cells = [`\`${code}\``, row.status, row.type, RETRY_WORDS[row.retry], row.summary, row.spec];
    return `| ${cells.join(" | ")} |`;
  });
}

/** One line for each row that only one side has. */
export function findErrorTableProblems(): string[] {
  const rows = readTable(readMarkdown(FILE).text, COLUMNS);
  const documented = rows.map((row) => `| ${COLUMNS.map((column) => row[column] ?? "").join(" | ")} |`);
  const coded = renderErrorRows();
  return [
    ...coded.filter((row) => !documented.includes(row)).map((row) => `${FILE} lacks: ${row}`),
    ...documented.filter((row) => !coded.includes(row)).map((row) => `${FILE} has, the code not: ${row}`),
  ];
}
