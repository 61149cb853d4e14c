// Closes an entry's links after a plan: wave by wave, a few at a time, and destroys those that do not let go.
//
// Spec: L3, L16, L24.
// I1  Every link is begun to be closed with 4503 and the plan's spread; none is destroyed earlier than LATE_MS after.
// I2  It ends at the latest LATE_MS after the last close was begun, with no link left.
// I3  The event loop is given back between batches: closing is work that live links would feel.

import { CLOSE_CODE } from "@moor/protocol";
import { sleep, type Runtime } from "@moor/runtime";
import type { LinkDrainPort } from "./link-drain-port.ts";
import type { SpreadPlan } from "./spread-plan.ts";

/** Time a link has to end after its close was begun. Milliseconds. Spec L24. */
export const LATE_MS = 5_000;

/** Links whose close is begun in one go. Count: some milliseconds of work. */
const BATCH_LINKS = 200;

/** Pause between two of those. Milliseconds. */
const BATCH_PAUSE_MS = 5;

/** The same where there is no time any more. Milliseconds: the close frames are written. */
const HURRY_MS = 500;

/** How often it is looked whether links are left. Milliseconds. */
const LEFT_LOOK_MS = 25;

/** How often links that do not let go are looked for. Milliseconds. */
const LATE_LOOK_MS = 250;

/** What closing needs. */
export interface CloseLinksParts {
  readonly links: LinkDrainPort;
  readonly runtime: Runtime;
  /** Fires when there is no time any more: what is left of the waves is closed at once. */
  readonly hurry: AbortSignal;
}

/** What became of the links. Counts. */
export interface CloseCounts {
  /** Closes begun. */
  readonly closed: number;
  /** Of these: links that had to be destroyed. */
  readonly destroyed: number;
}

/** Closes every link. Resolves when none is left (I2). */
export async function closeLinks(plan: SpreadPlan, parts: CloseLinksParts): Promise<CloseCounts> {
  const { links, runtime, hurry } = parts;
  const watch = watchLate(parts);
  const startedAtMs = runtime.monotonicMs();
  let closed = 0;
  for (const [index, wave] of plan.waves.entries()) {
    await sleep(runtime, startedAtMs + wave.atMs - runtime.monotonicMs(), hurry);
    // The last wave takes whoever came meanwhile too.
    const isLast = index === plan.waves.length - 1;
    closed += await closeWave(isLast ? Number.POSITIVE_INFINITY : wave.links, plan.spreadMs, parts);
  }
  await untilNoneIsLeft(parts);
  return { closed, destroyed: watch.stop() + links.destroyLate(0) };
}

/** Begins to close up to `countMax` links; returns how many. */
async function closeWave(countMax: number, spreadMs: number, parts: CloseLinksParts): Promise<number> {
  const { links, runtime, hurry } = parts;
  let closed = 0;
  while (closed < countMax) {
    const wanted = Math.min(BATCH_LINKS, countMax - closed);
    const begun = links.closeSome(wanted, CLOSE_CODE.restart, String(spreadMs));
    closed += begun;
    if (begun < wanted) break;
    await sleep(runtime, hurry.aborted ? 0 : BATCH_PAUSE_MS);
  }
  return closed;
}

/** Resolves when the last link has ended, or had its time to. */
async function untilNoneIsLeft({ links, runtime, hurry }: CloseLinksParts): Promise<void> {
  const beganAtMs = runtime.monotonicMs();
  const waitedMs = () => runtime.monotonicMs() - beganAtMs;
  while (links.links() > 0 && waitedMs() < (hurry.aborted ? HURRY_MS : LATE_MS)) {
    await sleep(runtime, LEFT_LOOK_MS);
  }
}

/** Destroys late links as their time comes; `stop` tells how many those were. */
function watchLate({ links, runtime }: CloseLinksParts): { readonly stop: () => number } {
  let destroyed = 0;
  const look = () => {
    destroyed += links.destroyLate(LATE_MS);
    timer = runtime.schedule(LATE_LOOK_MS, look);
  };
  let timer = runtime.schedule(LATE_LOOK_MS, look);
  return {
    stop: () => {
      runtime.cancel(timer);
      return destroyed;
    },
  };
}
