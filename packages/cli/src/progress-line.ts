// Progress on stderr: one line rewritten on a terminal, else a line now and then.

import type { Runtime } from "@moor/runtime";

/** Time between lines where they are not rewritten. Milliseconds. */
const LINE_INTERVAL_MS = 5_000;

/** Where progress goes. */
export interface ProgressOutput {
  /** Whether a line can be rewritten. */
  readonly isTerminal: boolean;
  write(text: string): void;
}

export class ProgressLine {
  readonly #output: ProgressOutput;
  readonly #runtime: Pick<Runtime, "monotonicMs">;
  #shown: { readonly text: string; readonly state: string; readonly atMs: number } | undefined;

  constructor(output: ProgressOutput, runtime: Pick<Runtime, "monotonicMs">) {
    this.#output = output;
    this.#runtime = runtime;
  }

  /** Shows `text` if it is new; where lines are not rewritten, only with a new `state` or after a while. */
  show(text: string, state: string): void {
    const atMs = this.#runtime.monotonicMs();
    const { isTerminal } = this.#output;
    const last = this.#shown;
    const isDue =
      last === undefined || isTerminal || last.state !== state || atMs - last.atMs >= LINE_INTERVAL_MS;
    if (!isDue || last?.text === text) return;
    // "\u001b[K" clears what a longer line before left behind.
    this.#output.write(isTerminal ? `\r${text}\u001b[K` : `${text}\n`);
    this.#shown = { text, state, atMs };
  }

  end(): void {
    if (this.#output.isTerminal && this.#shown !== undefined) this.#output.write("\n");
  }
}

/** This process's stderr. */
export function stderrProgress(): ProgressOutput {
  const { stderr } = process;
  return { isTerminal: stderr.isTTY, write: (text) => void stderr.write(text) };
}
