// What a leaving node does, in order: the door, the calls it holds, its links.
//
// Spec: L24, T4, T11; design "Drains and restarts".
// I1  No dial is upgraded and then closed, unless a successor has the port.
// I2  One-shots have their time before any link is closed: the box that answers may be on it.
// I3  Where clients cannot come back before this process has ended, links are closed last: what finishes before them
//     costs their clients nothing. Else they are closed at once, while calls finish.
// I4  A call is given up only after the grace, or when there is no time any more.

import type { Runtime } from "@moor/runtime";
import { closeLinks, type CloseCounts } from "./close-links.ts";
import type { LinkDrainPort } from "./link-drain-port.ts";
import type { SpreadPlan } from "./spread-plan.ts";

/**
 * What becomes of the public port. `closed`: dials are refused until the next process listens. `queued`: an inherited
 * socket that stays open, so that they wait in its queue. `taken-over`: another process listens there already.
 */
export type PortFate = "closed" | "queued" | "taken-over";

/** Time that one-shots get where links are to be closed at once. Milliseconds: most boxes answer in one. */
const ONE_SHOTS_MS = 5_000;

/** What a drain is made of. */
export interface DrainSteps {
  readonly port: PortFate;
  /** Whether clients can come back before this process has ended: to another node. */
  readonly isServedMeanwhile: boolean;
  readonly links: LinkDrainPort;
  /** Takes no more connections. */
  readonly stopAccepting: () => Promise<void>;
  /** Lets waiting polls go; resolves when no call is held, at the latest after `graceMs`, when the rest is ended. */
  readonly finishCalls: (graceMs: number) => Promise<void>;
  /** Resolves when no one-shot is open, at the latest after `graceMs`, when the rest is ended. Their boxes' links may be here. */
  readonly finishOneShots: (graceMs: number) => Promise<void>;
  /** Makes the plan, at the moment the first link is to be closed. */
  readonly plan: () => SpreadPlan;
  /** Milliseconds. */
  readonly graceMs: number;
  readonly runtime: Runtime;
  /** Fires when there is no time any more. */
  readonly hurry: AbortSignal;
}

/** Drains. Resolves when there is neither call nor link. */
export async function runDrain(steps: DrainSteps): Promise<CloseCounts> {
  const { port, isServedMeanwhile, links } = steps;
  if (port === "taken-over") await steps.stopAccepting();
  const areDialsServed = port === "queued" && !isServedMeanwhile;
  if (!areDialsServed) links.refuseDials();
  const finishedCalls = finish(steps.finishCalls, steps.graceMs, steps);
  if (!isServedMeanwhile) {
    await finishedCalls;
    // Answers to those calls came by the port, so it is closed only now.
    if (port !== "taken-over") await steps.stopAccepting();
    links.refuseDials();
  }
  // From here on no new ones come.
  await finish(steps.finishOneShots, isServedMeanwhile ? ONE_SHOTS_MS : steps.graceMs, steps);
  const counts = links.links() === 0 ? { closed: 0, destroyed: 0 } : await closeLinks(steps.plan(), steps);
  await finishedCalls;
  return counts;
}

async function finish(
  run: (graceMs: number) => Promise<void>,
  graceMs: number,
  { hurry }: DrainSteps,
): Promise<void> {
  const hurried = new Promise<void>((resolve) => {
    if (hurry.aborted) resolve();
    hurry.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([run(graceMs), hurried]);
  if (hurry.aborted) await run(0);
}
