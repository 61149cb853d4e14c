// DIR/process.json: which process holds a data directory, for the one that is to take over from it.
//
// Spec: L24.
// I1  It is written by the holder of the directory's lock and deleted before the lock is let go.
// I2  A process id is used again by the system: with it stands when the process started, where the system tells.

import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { errorCodeOf } from "@moor/runtime";
import { replaceFile } from "../replace-file.ts";

/** Name of the file in the data directory. */
export const PROCESS_FILE = "process.json";

/** A process, told apart from all others on this machine since it booted. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The system's own word for when it started; empty where there is none. */
  readonly startedAt: string;
}

/** How a process stands to this one. `other-user`: it lives, and this one may not signal it. */
export type ProcessState = "alive" | "gone" | "other-user";

/** Writes this process down. Throws what node:fs throws. */
export function writeProcessFile(dataDir: string, pid: number = process.pid): void {
  const identity: ProcessIdentity = { pid, startedAt: startOf(pid) };
  replaceFile(join(dataDir, PROCESS_FILE), `${JSON.stringify(identity)}\n`);
}

/** Deletes the file. Never throws: one that is left over is of a process that is gone. */
export function deleteProcessFile(dataDir: string): void {
  try {
    rmSync(join(dataDir, PROCESS_FILE), { force: true });
  } catch {
    // As said.
  }
}

/** The process that wrote itself down, if any did. */
export function readProcessFile(dataDir: string): ProcessIdentity | undefined {
  try {
    const content: unknown = JSON.parse(readFileSync(join(dataDir, PROCESS_FILE), "utf8"));
    if (typeof content !== "object" || content === null) return undefined;
    const { pid, startedAt } = content as Record<string, unknown>;
    if (!Number.isSafeInteger(pid) || (pid as number) < 1 || typeof startedAt !== "string") return undefined;
    return { pid: pid as number, startedAt };
  } catch {
    return undefined;
  }
}

/** Whether it still is that process. */
export function processState({ pid, startedAt }: ProcessIdentity): ProcessState {
  if (startedAt !== startOf(pid)) return "gone";
  try {
    process.kill(pid, 0);
    return "alive";
  } catch (error) {
    return errorCodeOf(error, "unknown") === "EPERM" ? "other-user" : "gone";
  }
}

/** When a process started, in clock ticks since the machine booted (proc_pid_stat(5)); empty for none, or on other systems. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name, in parentheses, may hold anything; the fields after it begin with the third.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? "" : (fields[19] ?? "");
  } catch {
    return "";
  }
}
