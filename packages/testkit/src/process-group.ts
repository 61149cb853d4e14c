// Who is alive in a process group: how tests and the demo prove that they leave nothing behind.

import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { until } from "./within.ts";

const run = promisify(execFile);

/** Ids of the living processes of group `groupId`; zombies, which are dead and only not yet waited for, are left out. */
export async function listProcessGroup(groupId: number): Promise<readonly number[]> {
  return process.platform === "linux" ? listFromProc(groupId) : listFromPs(groupId);
}

/** Resolves once no process of `groupId` is alive; rejects, naming the survivors' ids, after `deadlineMs`. */
export async function expectGroupEmpty(groupId: number, deadlineMs = 10_000): Promise<void> {
  try {
    await until(
      async () => (await listProcessGroup(groupId)).length === 0,
      `process group ${groupId} to be empty`,
      deadlineMs,
    );
  } catch (error) {
    const alive = (await listProcessGroup(groupId)).join(", ");
    throw new Error(`process group ${groupId} still has: ${alive}`, { cause: error });
  }
}

/** Sends `signal` to every process of the group; a group that is gone already is fine. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-groupId, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function listFromProc(groupId: number): Promise<number[]> {
  const members: number[] = [];
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = await readFile(`/proc/${entry}/stat`, "utf8").catch(() => "");
    // The command name, in parentheses, may hold anything; the fields after it are: state, parent, group.
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(group) === groupId && state !== "Z" && state !== "X") members.push(Number(entry));
  }
  return members;
}

async function listFromPs(groupId: number): Promise<number[]> {
  const { stdout } = await run("ps", ["-A", "-o", "pid=,pgid=,state="]);
  return stdout
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, group, state]) => Number(group) === groupId && state?.startsWith("Z") === false)
    .map(([id]) => Number(id));
}
