// A real Node process under test, in a process group of its own.
//
// I1  Signals reach the program itself: it is started from process.execPath, never through npm or a shell, which
//     would swallow them.
// I2  Whatever a test forgets to stop is killed, group and all, when the process that started it exits.

import { spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { collectLines, type LineLog } from "./line-log.ts";
import { expectGroupEmpty, listProcessGroup, signalGroup } from "./process-group.ts";
import { within } from "./within.ts";

export interface ProcessOptions {
  /** Arguments of Node itself: its options, the file, the file's arguments. */
  readonly args: readonly string[];
  /** Added to this process's environment; a value of undefined takes the name away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Descriptors it inherits: the first as its number 3, and so on. Default none. */
  readonly inherited?: readonly number[];
  /** Words before those of Node, such as a shell that sets variables and then becomes Node. Default none. */
  readonly launcher?: readonly string[];
  /** Whether something will be written to its standard input. Default: no. */
  readonly hasInput?: boolean;
  /** How the process is called in errors. Default: its file. */
  readonly label?: string;
}

/** How a process ended: by itself with a code, or by a signal. */
export type ProcessEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: NodeJS.Signals };

export interface RunningProcess {
  /** Process id, which is the id of its group too. */
  readonly pid: number;
  /** Its standard input; at its end from the start unless `ProcessOptions.hasInput`. */
  readonly stdin: Writable;
  readonly stdout: LineLog;
  readonly stderr: LineLog;
  /** Settles when the process has ended and its output is read to the end. */
  readonly ended: Promise<ProcessEnd>;
  /** Signals the program alone, as an operator's `kill` does. */
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, then the end; SIGKILL to the whole group when that takes longer than `deadlineMs` (default 15 000). */
  stop(deadlineMs?: number): Promise<ProcessEnd>;
  /** SIGKILL to the whole group, as a power cut for everything in it; resolves when the program is gone. */
  kill(): Promise<ProcessEnd>;
  /** Ids of the living processes of its group. */
  members(): Promise<readonly number[]>;
  /** Resolves when no process of its group is alive; rejects with the survivors after `deadlineMs`. */
  expectGroupEmpty(deadlineMs?: number): Promise<void>;
}

const STOP_MS_DEFAULT = 15_000;

const groupsAlive = new Set<number>();
process.on("exit", () => {
  for (const group of groupsAlive) signalGroup(group, "SIGKILL");
});

/** Starts `node …args`. Rejects when the operating system refuses. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const label = options.label ?? options.args.find((arg) => !arg.startsWith("-")) ?? "node";
  const [command = process.execPath, ...words] = [
    ...(options.launcher ?? []),
    process.execPath,
    ...options.args,
  ];
  const child = spawn(command, words, {
    detached: true,
    stdio: ["pipe", "pipe", "pipe", ...(options.inherited ?? [])],
    env: mergeEnvironment(options.env ?? {}),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  const { stdin: input, stdout: output, stderr: messages } = child;
  if (input === null || output === null || messages === null) throw new Error(`${label} has no pipes`);
  input.on("error", () => {}); // it may end before it has read everything
  if (options.hasInput !== true) input.end();
  const stdout = collectLines(output, `stdout of ${label}`);
  const stderr = collectLines(messages, `stderr of ${label}`);
  const ended = new Promise<ProcessEnd>((resolve) => {
    child.once("close", (code, signal) => {
      if (child.pid !== undefined) groupsAlive.delete(child.pid);
      resolve(signal === null ? { kind: "exited", code: code ?? 0 } : { kind: "killed", signal });
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${label} has no process id`);
  groupsAlive.add(pid);

  const kill = () => {
    signalGroup(pid, "SIGKILL");
    return within(ended, `${label} to end after SIGKILL`, STOP_MS_DEFAULT);
  };
  return {
    pid,
    stdin: input,
    stdout,
    stderr,
    ended,
    signal: (signal) => void child.kill(signal),
    stop: async (deadlineMs = STOP_MS_DEFAULT) => {
      child.kill("SIGTERM");
      return within(ended, `${label} to end after SIGTERM`, deadlineMs).catch(kill);
    },
    kill,
    members: () => listProcessGroup(pid),
    expectGroupEmpty: (deadlineMs) => expectGroupEmpty(pid, deadlineMs),
  };
}

function mergeEnvironment(added: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  const merged: NodeJS.ProcessEnv = { ...process.env, ...added };
  for (const [name, value] of Object.entries(merged)) if (value === undefined) delete merged[name];
  return merged;
}
