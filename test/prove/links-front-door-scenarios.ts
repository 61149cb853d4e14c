// The front door of links: handshakes a second per core, and good hellos beside a flood of wrong ones.
//
// Spec: L25, L28.

import { readCpuMs } from "../bench/parts.ts";
import { floodHellos, shakeHands, startLinkFleet } from "@moor/testkit/link-fleet";
import type { LinkEvent } from "@moor/testkit/link-journal";
import type { FloodDone, HandshakesDone } from "@moor/testkit/link-load";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { setLinkStage, type LinkStage } from "./link-stage.ts";
import { below, equals, type Pace, type Scenario } from "./scenario.ts";

const runtime = createNodeRuntime();

/** Boxes that take turns: a home is let in some hundred times in a row, then twice a second. */
const SHAKING_BOXES = 1_000;
/** Handshakes under way at a time. */
const SHAKING_AT_A_TIME = 32;
const BAD_HELLOS_PER_S = 500;
const GOOD_HELLOS_PER_S = 20;
const GOOD_MS_MAX = 5_000;
/** Where wrong hellos come from; half of the good ones share these addresses. */
const FLOOD_ADDRESSES = Array.from({ length: 8 }, (_, at) => `127.0.0.${at + 2}`);
const CLEAN_ADDRESSES = Array.from({ length: 4 }, (_, at) => `127.0.1.${at + 1}`);
/** How soon a good box dials again after a refusal. Milliseconds, at random. */
const REDIAL_WITHIN_MS = 500;
/** Homes that wrong hellos name. */
const FLOODED_HOMES = 50;

export interface HandshakesRun extends HandshakesDone {
  /** CPU time of the node for one handshake. Microseconds. */
  readonly nodeCpuUs: number;
  /** What the node says it can accept a second. */
  readonly acceptRate: number;
}

/** Boxes dial, prove themselves and leave, for `forMs`. */
export async function runHandshakes(forMs: number): Promise<HandshakesRun> {
  const stage = await setLinkStage({ homes: SHAKING_BOXES });
  try {
    const { endpoint, homes: clients, serviceKeys } = stage;
    const order = { endpoint, clients, serviceKeys, atATime: SHAKING_AT_A_TIME };
    await shakeHands({ ...order, forMs: forMs / 4 }); // everything is compiled then
    const cpuBeforeMs = readCpuMs(stage.node.process.pid);
    const done = await shakeHands({ ...order, forMs });
    const cpuMs = readCpuMs(stage.node.process.pid) - cpuBeforeMs;
    const acceptRate = await acceptRateOf(stage);
    return { ...done, nodeCpuUs: Math.round((cpuMs * 1000) / done.done), acceptRate };
  } finally {
    await stage.strike();
  }
}

async function acceptRateOf({ node }: LinkStage): Promise<number> {
  return Math.round(await node.operator.metric("moor_link_accept_rate"));
}

/** The scenario of handshakes. */
export const linksHandshakesScenario: Scenario = {
  name: "links-handshakes",
  title: "Handshakes of boxes: upgrade, proof verified, hello_ok signed",
  needsPostgres: false,
  run: async ({ links }) => {
    const { done, failed, tookMs, nodeCpuUs, acceptRate, p50Ms, p99Ms } = await runHandshakes(
      links.handshakesMs,
    );
    return {
      claims: [equals("every handshake is completed", failed, 0)],
      figures: {
        handshakes: done,
        "handshakes a second, seen": Math.round((done * 1000) / tookMs),
        "handshakes a second that the node says it can accept": acceptRate,
        "CPU time of the node per handshake, µs": nodeCpuUs,
        "handshakes a second per core": Math.round(1_000_000 / nodeCpuUs),
        handshakesAtATime: SHAKING_AT_A_TIME,
        p50Ms,
        p99Ms,
      },
    };
  },
};

export interface FloodRun {
  readonly flood: FloodDone;
  readonly good: number;
  /** Time from a good box's first dial to its hello_ok, slowest first; Infinity for one that never came online. */
  readonly onlineAfterMs: readonly number[];
  readonly goodRefusals: number;
  /** What the node says afterwards it can accept a second: nothing that it was flooded with counts. */
  readonly acceptRate: number;
}

/** Wrong hellos at full rate, and good boxes that come one after the other beside them. */
export async function runHelloFlood({ floodMs }: Pace["links"]): Promise<FloodRun> {
  const good = Math.round((GOOD_HELLOS_PER_S * floodMs) / 1000);
  const stage = await setLinkStage({ homes: good + FLOODED_HOMES });
  try {
    const flooded = stage.homes.slice(good).map(({ home }) => home);
    const flood = floodHellos({
      endpoint: stage.addressEndpoint,
      localAddresses: FLOOD_ADDRESSES,
      homes: flooded,
      perS: BAD_HELLOS_PER_S,
      forMs: floodMs,
    });
    const fleet = await startLinkFleet({
      kind: "plain",
      endpoint: stage.endpoint,
      clients: stage.homes.slice(0, good),
      serviceKeys: stage.serviceKeys,
      dialsPerS: GOOD_HELLOS_PER_S,
      redialWithinMs: REDIAL_WITHIN_MS,
      localAddresses: [...FLOOD_ADDRESSES, ...CLEAN_ADDRESSES, ...CLEAN_ADDRESSES],
    });
    const floodDone = await flood;
    const acceptRate = await acceptRateOf(stage);
    await sleep(runtime, GOOD_MS_MAX);
    const events = await fleet.journal();
    await fleet.stop();
    const goodRefusals = events.filter(({ kind }) => kind === "failed").length;
    return { flood: floodDone, good, onlineAfterMs: onlineTimes(events, good), goodRefusals, acceptRate };
  } finally {
    await stage.strike();
  }
}

function onlineTimes(events: readonly LinkEvent[], clients: number): readonly number[] {
  const first = (kind: LinkEvent["kind"], client: number) =>
    events.find((event) => event.kind === kind && event.client === client)?.atMs;
  return Array.from({ length: clients }, (_, client) => {
    const dialledAtMs = first("dial", client) ?? 0;
    return (first("online", client) ?? Infinity) - dialledAtMs;
  }).sort((one, other) => other - one);
}

/** The scenario of the flood. */
export const linksFloodScenario: Scenario = {
  name: "links-flood",
  title: "Good boxes beside a flood of wrong hellos",
  needsPostgres: false,
  run: async ({ links }) => {
    const { flood, good, onlineAfterMs, goodRefusals, acceptRate } = await runHelloFlood(links);
    const rows = Object.entries(flood.endings).toSorted(([one], [other]) => (one < other ? -1 : 1));
    return {
      claims: [
        equals("wrong hellos that were let in", flood.letIn, 0),
        below(
          "the slowest of the good boxes is online in 5 s",
          onlineAfterMs[0] ?? Infinity,
          GOOD_MS_MAX,
          "ms",
        ),
      ],
      figures: {
        wrongHellos: flood.sent,
        wrongHellosPerS: BAD_HELLOS_PER_S,
        goodBoxes: good,
        goodBoxesPerS: GOOD_HELLOS_PER_S,
        goodP50Ms: Math.round(onlineAfterMs[Math.floor(onlineAfterMs.length / 2)] ?? Number.NaN),
        goodSlowestMs: Math.round(onlineAfterMs[0] ?? Number.NaN),
        goodRefusals,
        "accept rate afterwards, links/s": acceptRate,
        ...Object.fromEntries(rows.map(([how, count]) => [`ended ${how}`, count])),
      },
    };
  },
};
