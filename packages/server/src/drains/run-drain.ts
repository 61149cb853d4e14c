// What a leaving node does, in order: the door, the calls it holds, its links.
//
// Spec: L24, T4, T11; design "Drains and restarts".
// I1  No dial is upgraded and then closed, unless a successor has the port.
// I2  Where clients cannot come back before this process has ended, links are closed last: what finishes before them
//     costs their clients nothing. Else they are closed at once, while calls finish.
// I3  A call is given up only after the grace, or when there is no time any more.

import type { Runtime } from "@moor/runtime";
import { closeLinks, type CloseCounts } from "./close-links.ts";
import type { LinkDrainPort } from "./link-drain-port.ts";
import type { SpreadPlan } from "./spread-plan.ts";

/**
 * What becomes of the public port. `closed`: dials are refused until the next process listens. `queued`: an inherited
 * socket that stays open, so that they wait in its queue. `taken-over`: another process listens there already.
 */
export type PortFate = "closed" | "queued" | "taken-over";

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
  const finished = finishCalls(steps);
  if (!isServedMeanwhile) {
    await finished;
    // Answers to those calls came by the port, so it is closed only now.
    if (port !== "taken-over") await steps.stopAccepting();
    links.refuseDials();
  }
  const counts = links.links() === 0 ? { closed: 0, destroyed: 0 } : await closeLinks(steps.plan(), steps);
  await finished;
  return counts;
}

async function finishCalls({ finishCalls: finish, graceMs, hurry }: DrainSteps): Promise<void> {
  const hurried = new Promise<void>((resolve) => {
    if (hurry.aborted) resolve();
    hurry.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([finish(graceMs), hurried]);
  if (hurry.aborted) await finish(0);
}
