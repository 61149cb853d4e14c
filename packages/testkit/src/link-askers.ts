// Commands at a steady rate, each asked again by its id until its app knows: what an app does that takes outcomes as
// they are said.
//
// Spec: L20, L31, L33.
// I1  Commands are begun by the clock, whatever became of earlier ones (an open loop).
// I2  A command is asked again with the same id only, after any ending but a result, until its time is over.

import { createNodeRuntime, sleep } from "@moor/runtime";
import type { Ask, AskEnding, CommandRecord } from "./link-command-verdict.ts";

/** An app of a home, by whatever client. Never rejects. */
export interface Asker {
  readonly home: string;
  ask(id: string, ttlMs: number): Promise<AskEnding>;
}

export interface AskersOptions {
  /** Who asks, in turn. */
  readonly askers: readonly Asker[];
  /** Commands a second over all. */
  readonly commandsPerS: number;
  /** Start of every command's id; unique among the runs of a ledger. */
  readonly prefix: string;
  /** Time a command gets at its shard. Milliseconds, default 5_000. */
  readonly ttlMs?: number;
  /** How long a command without a result is asked again. Milliseconds, default 20_000; 0 = never. */
  readonly askAgainForMs?: number;
}

/** Commands under way. */
export interface AskersRun {
  readonly begunCount: number;
  /** Begins no more, and resolves with every command once each has its last word. */
  finish(): Promise<readonly CommandRecord[]>;
}

const runtime = createNodeRuntime();

/** How often due commands are begun. Milliseconds. */
const TICK_MS = 5;
const TTL_MS_DEFAULT = 5_000;
const ASK_AGAIN_MS_DEFAULT = 20_000;
/** Pause before a command is asked again. Milliseconds. */
const ASK_PAUSE_MS = 250;

/** Starts asking. */
export function startAskers(options: AskersOptions): AskersRun {
  const { askers, commandsPerS, prefix } = options;
  const stopping = new AbortController();
  const records: Promise<CommandRecord>[] = [];
  const loop = (async () => {
    const startMs = runtime.monotonicMs();
    while ((await sleep(runtime, TICK_MS, stopping.signal)) === "elapsed") {
      const due = Math.ceil(((runtime.monotonicMs() - startMs) * commandsPerS) / 1000);
      for (let at = records.length; at < due; at += 1) {
        const asker = askers[at % askers.length] as Asker;
        records.push(pursue(asker, `${prefix}-${at}`, options));
      }
    }
  })();
  return {
    get begunCount() {
      return records.length;
    },
    finish: async () => {
      stopping.abort();
      await loop;
      return Promise.all(records);
    },
  };
}

/** Asks one command until it has a result or its time is over. */
export async function pursue(
  asker: Asker,
  id: string,
  { ttlMs = TTL_MS_DEFAULT, askAgainForMs = ASK_AGAIN_MS_DEFAULT }: Partial<AskersOptions> = {},
): Promise<CommandRecord> {
  const startMs = runtime.monotonicMs();
  const asks: Ask[] = [];
  for (;;) {
    const askedAtMs = runtime.wallMs();
    const ending = await asker.ask(id, ttlMs);
    asks.push({ askedAtMs, ending });
    const tookMs = runtime.monotonicMs() - startMs;
    if (ending.kind === "result" || tookMs + ASK_PAUSE_MS > askAgainForMs) {
      return { id, home: asker.home, asks, tookMs };
    }
    await sleep(runtime, ASK_PAUSE_MS);
  }
}
