// The project's own Markdown files.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Absolute path of the repository, with a trailing slash. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const FOREIGN = new Set(["node_modules", ".git", "dist"]);

export interface MarkdownFile {
  /** Path from the repository's root. */
  readonly path: string;
  readonly text: string;
  /** The text without code: fenced blocks and code spans are blanked, line numbers stay. */
  readonly prose: string;
}

/** Every Markdown file of the repository but those of installed packages. */
export function readMarkdownFiles(dir = ""): MarkdownFile[] {
  return readdirSync(ROOT + dir, { withFileTypes: true }).flatMap((entry) => {
    const path = dir + entry.name;
    if (entry.isDirectory()) return FOREIGN.has(entry.name) ? [] : readMarkdownFiles(`${path}/`);
    return entry.name.endsWith(".md") ? [readMarkdown(path)] : [];
  });
}

/** One Markdown file by its path from the root; throws when it is not there. */
export function readMarkdown(path: string): MarkdownFile {
  const text = readFileSync(ROOT + path, "utf8");
  const blank = (code: string) => code.replaceAll(/[^\n]/g, " ");
  return { path, text, prose: text.replaceAll(/^```[\s\S]*?^```/gm, blank).replaceAll(/`[^`\n]*`/g, blank) };
}

/** Cells of the rows of the first table whose header row has all of `columns`, keyed by column; [] if there is none. */
export function readTable(
  text: string,
  columns: readonly string[],
): readonly Readonly<Record<string, string>>[] {
  const lines = text.split("\n");
  const cells = (line: string) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
  const head = lines.findIndex((line) => columns.every((column) => cells(line).includes(column)));
  if (head === -1) return [];
  const names = cells(lines[head] ?? "");
  const rows: Record<string, string>[] = [];
  for (const line of lines.slice(head + 2)) {
    if (!line.startsWith("|")) break;
    rows.push(Object.fromEntries(cells(line).map((cell, index) => [names[index] ?? "", cell])));
  }
  return rows;
}
