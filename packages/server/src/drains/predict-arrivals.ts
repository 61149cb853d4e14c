// How a restart's clients come back, foretold: the machine that real clients run (LinkFollower), driven over virtual time
// against a node that accepts as many a second as it has been measured to.
//
// Spec: L14–L17, L24.   Pure: no clock, no I/O; the same input and seed give the same forecast.
// I1  A sample of at most SAMPLE_MAX clients stands for all; rates are scaled up, instants are not.
// I2  What is foretold is when clients are back: at their hello_ok, which comes when the node has accepted whoever dialled
//     before them. Dials that waited while it was away come first.
// It does not foretell a queue that is too short for those who wait in it.

import { AcceptQueue } from "./accept-queue.ts";
import { EarliestFirst } from "./earliest-first.ts";
import {
  createFollower,
  createNaive,
  type ReturningClient,
  type ReturningClientOptions,
} from "./returning-client.ts";
import { planEndMs, type SpreadPlan } from "./spread-plan.ts";

/** Most clients that are simulated. Count: half a second of work, and a peak read from bins of hundreds. */
const SAMPLE_MAX = 10_000;

/** A client that is not back by then is missing. Milliseconds. */
const HORIZON_MS = 600_000;

/** Width of a bin, and of the window whose fullest place is the peak. Milliseconds. */
const BIN_MS = 1_000;

/** What a forecast is made from. */
export interface PredictionInput {
  readonly plan: Pick<SpreadPlan, "links" | "spreadMs" | "waves">;
  /** Links a second that whoever takes the clients in can accept when it does nothing else. More than 0. */
  readonly acceptRate: number;
  /** Time from the last wave's close until the next process serves. Milliseconds. */
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
  /** Clients a second that have their hello_ok, second by second from the first close on, up to the last one that sees any. */
  readonly perSecond: readonly number[];
  /** Most of them within any one second. */
  readonly peakPerS: number;
  /** Clients a second if they came back evenly over the time the plan gives them: the measure of a peak. */
  readonly meanPerS: number;
  readonly peakToMean: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
  /** Longest time from a dial to its hello_ok. */
  readonly longestWaitMs: number;
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
    spread: arrivalsOf(input, plan.waves, createFollower),
    naive: arrivalsOf(input, whole, createNaive),
  };
}

interface Ends {
  readonly arrivedMs: number[];
  longestWaitMs: number;
  failedDials: number;
  missing: number;
}

function arrivalsOf(
  input: PredictionInput,
  waves: SpreadPlan["waves"],
  create: (options: ReturningClientOptions) => ReturningClient,
): Arrivals {
  const { plan, acceptRate, gapMs, isHandedOver, isServedMeanwhile, seed = 1 } = input;
  const scale = Math.max(1, plan.links / SAMPLE_MAX);
  const random = createRandom(seed);
  const clients = waves.flatMap(({ atMs: closedAtMs, links }) =>
    Array.from({ length: Math.round(links / scale) }, () =>
      create({ closedAtMs, spreadMs: plan.spreadMs, random }),
    ),
  );
  const opensAtMs = isServedMeanwhile ? 0 : (waves.at(-1)?.atMs ?? 0) + gapMs;
  const queue = new AcceptQueue({ opensAtMs, isQueued: isHandedOver, acceptRate: acceptRate / scale });
  return summarise(bringBack(clients, queue), scale, (plan.links * 1000) / planEndMs(plan));
}

/** Has clients dial until they are back, each dial in its turn. */
function bringBack(clients: readonly ReturningClient[], queue: AcceptQueue): Ends {
  const ends: Ends = { arrivedMs: [], longestWaitMs: 0, failedDials: 0, missing: 0 };
  const dials = new EarliestFirst<ReturningClient>();
  const awaitDial = (client: ReturningClient, firstAtMs: number) => {
    let atMs = firstAtMs;
    // Whom nobody hears changes nothing for others.
    for (; queue.isRefused(atMs); atMs = client.dialAfter(atMs)) ends.failedDials += 1;
    if (atMs < HORIZON_MS) dials.add(atMs, client);
    else ends.missing += 1;
  };
  for (const client of clients) awaitDial(client, client.firstDial());
  for (let next = dials.take(); next !== undefined; next = dials.take()) {
    const { isAccepted, atMs } = queue.dial(next.atMs);
    if (isAccepted) {
      ends.arrivedMs.push(atMs);
      ends.longestWaitMs = Math.max(ends.longestWaitMs, atMs - next.atMs);
    } else {
      ends.failedDials += 1;
      awaitDial(next.item, next.item.dialAfter(atMs));
    }
  }
  return ends;
}

/** Clients are accepted one after the other: `arrivedMs` rises. */
function summarise(
  { arrivedMs: sorted, longestWaitMs, failedDials, missing }: Ends,
  scale: number,
  meanPerS: number,
): Arrivals {
  const maxMs = sorted.at(-1) ?? 0;
  const counts = Array<number>(sorted.length === 0 ? 0 : Math.floor(maxMs / BIN_MS) + 1).fill(0);
  for (const atMs of sorted) {
    const bin = Math.floor(atMs / BIN_MS);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const perSecond = counts.map((count) => (count * scale * 1000) / BIN_MS);
  const peakPerS = (fullestSecond(sorted) * scale * 1000) / BIN_MS;
  const quantile = (part: number) => sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
  return {
    perSecond,
    peakPerS,
    meanPerS,
    peakToMean: meanPerS === 0 ? 0 : peakPerS / meanPerS,
    p50Ms: quantile(0.5),
    p95Ms: quantile(0.95),
    maxMs,
    longestWaitMs,
    failedDials: failedDials * scale,
    missing: missing * scale,
  };
}

/** Most moments that lie within one second. */
function fullestSecond(sortedMs: readonly number[]): number {
  let first = 0;
  let most = 0;
  for (const [at, atMs] of sortedMs.entries()) {
    while (atMs - (sortedMs[first] ?? atMs) >= BIN_MS) first += 1;
    most = Math.max(most, at - first + 1);
  }
  return most;
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
