// Links between the project's documents: every relative one leads to a file, and its fragment to a heading there.

import { existsSync } from "node:fs";
import path from "node:path";
import { readMarkdown, ROOT, type MarkdownFile } from "./markdown-files.ts";

/** One line for each relative link that leads nowhere. Links to other sites are not followed. */
export function findBrokenLinks(files: readonly MarkdownFile[]): string[] {
  return files.flatMap((file) =>
    linksOf(file).flatMap((link) => {
      const [target = "", fragment] = link.split("#");
      const aim = target === "" ? file.path : path.posix.join(path.posix.dirname(file.path), target);
      if (!existsSync(ROOT + aim)) return [`${file.path}: link to ${link}, which is not there`];
      if (fragment === undefined || !aim.endsWith(".md")) return [];
      return anchorsOf(readMarkdown(aim)).has(fragment)
        ? []
        : [`${file.path}: link to ${link}; ${aim} has no such heading`];
    }),
  );
}

function linksOf(file: MarkdownFile): string[] {
  return [...file.prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? "")
    .filter((link) => !/^[a-z]+:/.test(link));
}

/** Fragment names of a document's headings, as common renderers of Markdown make them. */
function anchorsOf(file: MarkdownFile): Set<string> {
  const fences = file.text.replaceAll(/^```[\s\S]*?^```/gm, "");
  const headings = [...fences.matchAll(/^#+ (.+)$/gm)].map((match) => match[1] ?? "");
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
