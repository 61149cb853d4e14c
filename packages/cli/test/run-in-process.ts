// Runs the program in this process and keeps what it writes.

import { vi } from "vitest";
import { runProgram } from "../src/main.ts";

/** What a run came to. */
export interface ProgramRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `moor …args`, with the output streams of this process caught. */
export async function runInProcess(args: readonly string[]): Promise<ProgramRun> {
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  const code = await runProgram(args);
  vi.restoreAllMocks();
  return { code, ...written };
}
