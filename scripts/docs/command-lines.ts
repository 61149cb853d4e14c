// Command lines in the documents: every flag of `moor` they show is one that `moor … --help` knows.

import { spawnSync } from "node:child_process";
import { ROOT, type MarkdownFile } from "./markdown-files.ts";

/** Verbs that take a second one: `moor tunnel create`. */
const NOUNS = new Set([
  "box",
  "tunnel",
  "home",
  "home token",
  "shard",
  "key",
  "token-key",
  "service-key",
  "corrections",
  "config",
  "cluster",
  "directory",
]);

/** One line for each flag that the documents show and the command does not have. */
export function findUnknownFlags(files: readonly MarkdownFile[]): string[] {
  const helps = new Map<string, string>();
  return files.flatMap((file) =>
    commandLinesOf(file).flatMap(({ command, flags }) => {
      if (!helps.has(command)) helps.set(command, readHelp(command));
      const known: ReadonlySet<string> = new Set(helps.get(command)?.match(/--[a-z][a-z-]*/g));
      return flags
        .filter((flag) => !known.has(flag))
        .map((flag) => `${file.path}: moor ${command} has no ${flag}`);
    }),
  );
}

/** Lines that are a `moor` command, after a prompt, a variable or `npx`; joined over trailing backslashes. */
function commandLinesOf(file: MarkdownFile): { command: string; flags: string[] }[] {
  const joined = file.text.replaceAll(/\\\n\s*/g, " ");
  return [...joined.matchAll(/^\s*(?:\$ )?(?:[A-Z_]+=\S+ )?(?:npx )?moor ([a-z].*)$/gm)].map((match) => {
    const words = (match[1] ?? "").split(/\s+/);
    let verbs = words.slice(0, 1);
    while (NOUNS.has(verbs.join(" ")) && !(words[verbs.length] ?? "-").startsWith("-")) {
      verbs = words.slice(0, verbs.length + 1);
    }
    const flags = words.map((word) => word.replace(/=.*/, "")).filter((word) => /^--[a-z]/.test(word));
    return { command: verbs.join(" "), flags };
  });
}

function readHelp(command: string): string {
  const args = ["packages/cli/bin/moor.js", ...command.split(" "), "--help"];
  const help = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8", timeout: 30_000 });
  return help.stdout;
}
