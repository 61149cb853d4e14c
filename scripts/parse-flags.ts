// Flags of the repository's own programs: a wrong one is told in two lines, not by a stack.

import { parseArgs, type ParseArgsOptionsConfig } from "node:util";

/**
 * The values of this process's flags. Prints `usage` and ends the process for `--help` (0) and for a wrong flag (2).
 *
 * @param usage one line, e.g. `npm run demo [-- --stay]`
 */
export function parseFlags<const Options extends ParseArgsOptionsConfig>(usage: string, options: Options) {
  return parse(usage, options, false).values;
}

/** As `parseFlags`, with what else stands on the command line: `{values, positionals}`. */
export function parseFlagsAndNames<const Options extends ParseArgsOptionsConfig>(
  usage: string,
  options: Options,
) {
  const { values, positionals } = parse(usage, options, true);
  return { values, positionals: positionals as readonly string[] };
}

function parse<const Options extends ParseArgsOptionsConfig>(
  usage: string,
  options: Options,
  allowPositionals: boolean,
) {
  try {
    const parsed = parseArgs({ allowPositionals, options: { ...options, help: { type: "boolean" } } });
    if (!("help" in parsed.values) || parsed.values.help !== true) return parsed;
    console.log(`Usage: ${usage}`);
    process.exit(0);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\nUsage: ${usage}`);
    process.exit(2);
  }
}
