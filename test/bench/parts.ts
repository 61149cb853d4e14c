// The bench's processes and what it reads off them: CPU time from /proc, memory through the preloaded probe.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startProcess, type ProcessOptions, type RunningProcess } from "@moor/testkit/processes";

/** Arguments of Node that make a process answer `readMemory`. */
export const MEMORY_PROBE_ARGS = [
  "--expose-gc",
  "--import",
  fileURLToPath(new URL("memory-probe.ts", import.meta.url)),
] as const;

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** CPU time a process has used, user and system together, in milliseconds; NaN where there is no /proc. */
export function readCpuMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return Number.NaN;
  }
}

export interface Memory {
  /** Bytes of physical memory the process holds. */
  readonly rss: number;
  /** Bytes of live JavaScript objects. */
  readonly heapUsed: number;
  readonly external: number;
}

/** Memory of a process started with MEMORY_PROBE_ARGS, after a garbage collection. */
export async function readMemory(running: RunningProcess): Promise<Memory> {
  const seen = running.stderr.lines.length;
  running.signal("SIGWINCH");
  const line = await running.stderr.waitFor(
    (candidate) =>
      running.stderr.lines.indexOf(candidate, seen) >= seen && candidate.startsWith("memory-probe "),
  );
  return JSON.parse(line.slice("memory-probe ".length)) as Memory;
}

export interface PartOptions extends Omit<ProcessOptions, "args" | "label"> {
  readonly args?: readonly string[];
  readonly nodeArgs?: readonly string[];
}

/** Starts a program of this folder. */
export function startPart(file: string, options: PartOptions = {}): Promise<RunningProcess> {
  const { args = [], nodeArgs = [], ...rest } = options;
  const program = fileURLToPath(new URL(file, import.meta.url));
  return startProcess({ ...rest, label: file, args: [...nodeArgs, program, ...args] });
}
