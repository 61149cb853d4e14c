// How a restart's clients come back, foretold: the machine that real clients run (LinkFollower), driven over virtual time.
//
// Spec: L14–L17, L24.   Pure: no clock, no I/O; the same input and seed give the same forecast.
// I1  A sample of at most SAMPLE_MAX clients stands for all; rates are scaled up, instants are not.
// I2  What is foretold is the load of whoever takes clients in: a dial counts when it is served, not when it is refused,
//     and dials that waited in a queue count together, when the queue is opened.
// It does not foretell overload: a node that is asked for more than it can do makes clients wait longer than this says.

import { createLinkFollower, DIAL_WAIT_MS, stepLinkFollower, type LinkEvent } from "@moor/protocol";
import { planEndMs, type SpreadPlan } from "./spread-plan.ts";

/** Most clients that are simulated. Count: a second of work, and a peak read from bins of hundreds. */
const SAMPLE_MAX = 20_000;

/** A client that is not back by then is missing. Milliseconds. */
const HORIZON_MS = 600_000;

/** Within what time a naive client redials. Milliseconds. */
const NAIVE_REDIAL_MS = 500;

/** Width of a bin. Milliseconds. */
const BIN_MS = 1_000;

/** What a forecast is made from. */
export interface PredictionInput {
  readonly plan: Pick<SpreadPlan, "links" | "spreadMs" | "waves">;
  /** Time from the last link's end until the next process serves. Milliseconds. */
  readonly gapMs: number;
  /** Whether dials wait in a queue in that time, instead of being refused. */
  readonly isHandedOver: boolean;
  /** Whether another node serves all the time. */
  readonly isServedMeanwhile: boolean;
  /** Any integer. Default 1. */
  readonly seed?: number;
}

/** How clients come back. Milliseconds since the first close. */
export interface Arrivals {
  /** Clients a second that are taken in, second by second from the first close on, up to the last one that sees any. */
  readonly perSecond: readonly number[];
  readonly peakPerS: number;
  /** Clients a second if they came back evenly over the time the plan gives them: the measure of a peak. */
  readonly meanPerS: number;
  readonly peakToMean: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
  /** Dials that were refused, or given up after DIAL_WAIT_MS. */
  readonly failedDials: number;
  /** Clients not back within ten minutes. */
  readonly missing: number;
}

/** What a restart would look like. */
export interface ArrivalForecast {
  /** With 4503 and its spread. */
  readonly spread: Arrivals;
  /** The same restart with clients that redial within half a second after whatever ended, again and again. */
  readonly naive: Arrivals;
}

/** Foretells a restart. */
export function predictArrivals(input: PredictionInput): ArrivalForecast {
  const { plan } = input;
  const whole = [{ atMs: 0, links: plan.links }];
  return {
    spread: arrivalsOf(input, plan.waves, followClient),
    naive: arrivalsOf(input, whole, hammer),
  };
}

interface Ends {
  readonly arrivedMs: number[];
  failedDials: number;
  missing: number;
}

function arrivalsOf(
  input: PredictionInput,
  waves: SpreadPlan["waves"],
  run: (client: ClientRun, ends: Ends) => void,
): Arrivals {
  const { links } = input.plan;
  const scale = Math.max(1, links / SAMPLE_MAX);
  const random = createRandom(input.seed ?? 1);
  const dial = createService(input, waves.at(-1)?.atMs ?? 0);
  const ends: Ends = { arrivedMs: [], failedDials: 0, missing: 0 };
  for (const wave of waves) {
    const sample = Math.round(wave.links / scale);
    for (let client = 0; client < sample; client += 1) {
      run({ closedAtMs: wave.atMs, spreadMs: input.plan.spreadMs, dial, random }, ends);
    }
  }
  return summarise(ends, scale, (links * 1000) / planEndMs(input.plan));
}

/** How a dial ends: served at, or failed at. */
interface DialEnd {
  readonly isServed: boolean;
  readonly atMs: number;
}

/** The service as clients meet it: away from the last close until the gap is over, unless somebody else serves. */
function createService(
  { gapMs, isHandedOver, isServedMeanwhile }: PredictionInput,
  awayFromMs: number,
): (atMs: number) => DialEnd {
  const backAtMs = awayFromMs + gapMs;
  return (atMs) => {
    if (isServedMeanwhile || atMs >= backAtMs) return { isServed: true, atMs };
    if (!isHandedOver) return { isServed: false, atMs };
    if (backAtMs - atMs <= DIAL_WAIT_MS) return { isServed: true, atMs: backAtMs };
    return { isServed: false, atMs: atMs + DIAL_WAIT_MS };
  };
}

interface ClientRun {
  readonly closedAtMs: number;
  readonly spreadMs: number;
  readonly dial: (atMs: number) => DialEnd;
  readonly random: () => number;
}

const HOST = "base.example";

/** A client that has been linked for long. Its last steps are the same for all. */
const LINKED = (() => {
  const fresh = createLinkFollower({ base: HOST, home: "home", isFollowing: true });
  const dialling = stepLinkFollower(fresh, { kind: "started", atMs: -HORIZON_MS }).state;
  return stepLinkFollower(dialling, { kind: "verified", atMs: -HORIZON_MS }).state;
})();

/** A client as Moor's are, from its 4503 until it is back. */
function followClient({ closedAtMs, spreadMs, dial, random }: ClientRun, ends: Ends): void {
  let state = LINKED;
  let event: LinkEvent = {
    kind: "restarting",
    atMs: closedAtMs,
    random: random(),
    reason: String(spreadMs),
  };
  while (event.atMs < HORIZON_MS) {
    const step = stepLinkFollower(state, event);
    state = step.state;
    let atMs: number = event.atMs;
    for (const effect of step.effects) {
      if (effect.kind === "wait") atMs += effect.ms;
      if (effect.kind !== "dial") continue;
      const end = dial(atMs);
      if (end.isServed) return void ends.arrivedMs.push(end.atMs);
      ends.failedDials += 1;
      atMs = end.atMs;
    }
    event =
      state.phase.kind === "dialing"
        ? { kind: "dial-failed", atMs, random: random(), cause: "connect" }
        : { kind: "timer-fired", atMs };
  }
  ends.missing += 1;
}

/** A client that knows neither spread nor backoff. */
function hammer({ closedAtMs, dial, random }: ClientRun, ends: Ends): void {
  let atMs = closedAtMs;
  while (atMs < HORIZON_MS) {
    const end = dial(atMs + random() * NAIVE_REDIAL_MS);
    if (end.isServed) return void ends.arrivedMs.push(end.atMs);
    ends.failedDials += 1;
    atMs = end.atMs;
  }
  ends.missing += 1;
}

function summarise({ arrivedMs, failedDials, missing }: Ends, scale: number, meanPerS: number): Arrivals {
  const sorted = arrivedMs.toSorted((one, other) => one - other);
  const maxMs = sorted.at(-1) ?? 0;
  const counts = Array<number>(sorted.length === 0 ? 0 : Math.floor(maxMs / BIN_MS) + 1).fill(0);
  for (const atMs of sorted) {
    const bin = Math.floor(atMs / BIN_MS);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const perSecond = counts.map((count) => (count * scale * 1000) / BIN_MS);
  const peakPerS = perSecond.reduce((peak, rate) => Math.max(peak, rate), 0);
  const quantile = (part: number) => sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
  return {
    perSecond,
    peakPerS,
    meanPerS,
    peakToMean: meanPerS === 0 ? 0 : peakPerS / meanPerS,
    p50Ms: quantile(0.5),
    p95Ms: quantile(0.95),
    maxMs,
    failedDials: failedDials * scale,
    missing: missing * scale,
  };
}

/** mulberry32: small, seedable, uniform in [0, 1). */
function createRandom(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
