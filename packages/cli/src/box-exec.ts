// Commands of a box that a program acts on: the command's data on its stdin, its result on its stdout.
//
// Spec: L20, L31.
// I1  Every command has a result, at the latest when its time is over: the program and whatever it started are then killed,
//     and so they are when this process exits. What has left the program's process group is not waited for.
// I2  A failure is told by a word; nothing the program wrote on stderr leaves this machine.

import { spawn, type ChildProcess } from "node:child_process";
import { LINK_DATA_BYTES_MAX } from "@moor/protocol";
import { RawJson, type BoxCommand, type CommandHandler } from "@moor/client";

/** How a program ended. */
interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: Buffer;
  /** Why it cannot be a result, whatever the code says. */
  readonly fault: "timed_out" | "result_too_large" | "not_started" | undefined;
}

/** Programs under way: in groups of their own, which no signal to this process reaches. */
const running = new Set<ChildProcess>();
process.on("exit", () => running.forEach(killGroup));

/** Acts on commands by running `program` in a shell; gives `{"error":WORD}` when that fails. */
export function createExecHandler(program: string): CommandHandler {
  return async (command) => resultOf(await run(program, command));
}

function resultOf({ code, stdout, fault }: ProgramEnd): unknown {
  if (fault !== undefined) return { error: fault };
  if (code !== 0) return { error: "exit", code };
  try {
    return new RawJson(UTF8.decode(stdout).trim());
  } catch {
    return { error: "not_json" };
  }
}

/** Refuses what is no UTF-8. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

function run(program: string, { id, app, ttlMs, data, signal }: BoxCommand): Promise<ProgramEnd> {
  // In a group of its own, so that what it starts ends with it.
  const child = spawn(program, {
    shell: true,
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, MOOR_COMMAND_ID: id, MOOR_APP: app, MOOR_TTL_MS: String(ttlMs) },
  });
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let fault: ProgramEnd["fault"];
    const kill = (why: "timed_out" | "result_too_large") => {
      fault ??= why;
      killGroup(child);
      // Who left the group may hold the other end for ever.
      child.stdout.destroy();
    };
    const onAbort = () => kill("timed_out");
    const end = (code: number | null) => {
      signal.removeEventListener("abort", onAbort);
      running.delete(child);
      resolve({ code, stdout: Buffer.concat(chunks), fault });
    };
    running.add(child);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    child.once("error", () => {
      fault ??= "not_started";
      end(null);
    });
    child.once("close", (code) => end(code));
    child.stdout.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > LINK_DATA_BYTES_MAX) kill("result_too_large");
    });
    // A program that does not read its stdin is free not to.
    child.stdin.on("error", () => {});
    child.stdin.end(data.text);
  });
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
