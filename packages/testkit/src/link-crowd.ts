// A crowd of link clients within one process: each dials when its turn comes and is heard of in one journal.
//
// Spec: L15, L16 (what a client that knows them does is the client library's; the other kinds are here).
// I1  Clients begin to dial at the ordered rate, or slower where the service is slower; what they do after their first
//     dial is their own.

import { createNodeRuntime, sleep } from "@moor/runtime";
import { WebSocket } from "ws";
import type { LinkEvent } from "./link-journal.ts";
import { boxKeyOf, dialPlainBox, lookupLoopback, type PlainDialEnding } from "./link-plain.ts";

/** How the clients of a crowd behave. `library`: boxes by the client library. `plain`: boxes by hand, without `shard`.
 *  `bare`: a WebSocket and nothing else, for the yardstick beside it. */
export type CrowdKind = "library" | "plain" | "bare";

/** One client: its number in the fleet, its home, and the seed of its box's key (32 bytes, base64url). */
export interface CrowdClient {
  readonly client: number;
  readonly home: string;
  readonly seed: string;
}

/** What a crowd is told. JSON, since it may be told to another process. */
export interface CrowdOrder {
  readonly kind: CrowdKind;
  readonly endpoint: string;
  readonly clients: readonly CrowdClient[];
  /** Raw service keys, base64url. */
  readonly serviceKeys: readonly string[];
  /** Clients that begin to dial a second. */
  readonly dialsPerS: number;
  /** `plain`: after any end it dials again at a random moment within this time. Milliseconds. Default: never. */
  readonly redialWithinMs?: number;
  /** PEM of the authority of the service's certificate. */
  readonly ca?: string;
  /** `library`: capabilities. Default: the library's own. */
  readonly caps?: readonly string[];
  /** `library`: folder for each box's record and command log. Default: in memory. */
  readonly stateDir?: string;
  /** `library`: file that boxes add a line to for each command they act on (`BoxAct`). Default: none. */
  readonly ledgerFile?: string;
  /** `library`: longest time a command takes; each takes a random part of it. Milliseconds, default 0. */
  readonly actMs?: number;
  /** `plain`: loopback addresses the clients dial from, in turn. Default: the system's choice. */
  readonly localAddresses?: readonly string[];
}

/** A crowd under way. */
export interface Crowd {
  /** Clients that are online now. */
  readonly onlineCount: number;
  /** Everything that has happened, in order. */
  readonly events: readonly LinkEvent[];
  /** Ends every link and dials no more. */
  stop(): Promise<void>;
}

/** A client of a crowd: it dials once it is started, and says what happens to it. */
export interface CrowdMember {
  start(): void | Promise<void>;
  stop(): void | Promise<void>;
}

/** How a dial or link ended, as in LinkEvent. */
export interface NotedEnd {
  readonly code: number;
  readonly fault?: string;
}

/** Takes what happens to one client. `end`: of a `failed` or `lost`. */
export type NoteLinkEvent = (kind: LinkEvent["kind"], end?: NotedEnd) => void;

/** Makes one client. */
export type MemberFactory = (client: CrowdClient, order: CrowdOrder, note: NoteLinkEvent) => CrowdMember;

const runtime = createNodeRuntime();

/** How often due clients are started. Milliseconds. */
const TICK_MS = 5;
/** Dials under way at which no further client is started. */
const OPEN_DIALS_MAX = 100;

/** Starts a crowd of clients made by `make`. */
export function startCrowd(order: CrowdOrder, make: MemberFactory): Crowd {
  const events: LinkEvent[] = [];
  let onlineCount = 0;
  let openDials = 0;
  const stopping = new AbortController();
  const members = order.clients.map((client) =>
    make(client, order, (kind, end = { code: 0 }) => {
      if (kind === "online") onlineCount += 1;
      if (kind === "lost") onlineCount -= 1;
      if (kind === "dial") openDials += 1;
      if (kind === "online" || kind === "failed") openDials -= 1;
      const at = { atMs: runtime.wallMs(), client: client.client };
      events.push(kind === "dial" || kind === "online" ? { kind, ...at } : { kind, ...at, ...end });
    }),
  );
  const room = () => OPEN_DIALS_MAX - openDials;
  const starting = startInTurn(members, order.dialsPerS, room, stopping.signal);
  return {
    get onlineCount() {
      return onlineCount;
    },
    events,
    stop: async () => {
      stopping.abort();
      await starting;
      await Promise.all(members.map(async (member) => member.stop()));
    },
  };
}

async function startInTurn(
  members: readonly CrowdMember[],
  perS: number,
  room: () => number,
  signal: AbortSignal,
): Promise<void> {
  let due = 0;
  let lookedAtMs = runtime.monotonicMs();
  let started = 0;
  while (started < members.length && (await sleep(runtime, TICK_MS, signal)) === "elapsed") {
    const nowMs = runtime.monotonicMs();
    // Who could not start in its turn is not made up for in a burst.
    due = Math.min(due + ((nowMs - lookedAtMs) * perS) / 1000, started + Math.max(1, perS / 10));
    lookedAtMs = nowMs;
    const count = Math.min(Math.floor(due) - started, room());
    for (const member of members.slice(started, started + Math.max(0, count))) void member.start();
    started += Math.max(0, Math.min(count, members.length - started));
  }
}

/** A box by hand: without `shard`, and naive if it redials at all. */
export const makePlainMember: MemberFactory = (client, order, note) => {
  const key = boxKeyOf(client.seed);
  const { endpoint, serviceKeys, redialWithinMs, ca, localAddresses = [] } = order;
  const localAddress = localAddresses[client.client % localAddresses.length];
  const stopping = new AbortController();
  let closeLink = () => {};
  const dialOnce = async () => {
    note("dial");
    const ending = await dialPlainBox({
      endpoint,
      home: client.home,
      key,
      serviceKeys,
      ...(ca === undefined ? {} : { ca }),
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    if (ending.kind !== "online") return note("failed", endOf(ending));
    note("online");
    closeLink = () => ending.link.destroy();
    if (stopping.signal.aborted) closeLink();
    note("lost", { code: (await ending.link.closed).code });
  };
  const live = async () => {
    await dialOnce();
    if (redialWithinMs === undefined) return;
    while ((await sleep(runtime, runtime.random() * redialWithinMs, stopping.signal)) === "elapsed") {
      await dialOnce();
    }
  };
  return {
    start: () => void live(),
    stop: () => {
      stopping.abort();
      closeLink();
    },
  };
};

function endOf(ending: Exclude<PlainDialEnding, { kind: "online" }>): NotedEnd {
  switch (ending.kind) {
    case "closed":
      return { code: ending.code };
    case "refused":
      return { code: ending.status };
    case "failed":
      return { code: 0, fault: ending.fault };
  }
}

/** A WebSocket to the yardstick: it says one word and counts as online when it hears one. */
export const makeBareMember: MemberFactory = (_client, order, note) => {
  let socket: WebSocket | undefined;
  return {
    start: () => {
      note("dial");
      const opened = new WebSocket(order.endpoint, {
        perMessageDeflate: false,
        lookup: lookupLoopback,
        ...(order.ca === undefined ? {} : { ca: order.ca }),
      });
      opened.on("open", () => opened.send("hello"));
      opened.on("message", () => note("online"));
      opened.on("error", () => note("failed"));
      socket = opened;
    },
    stop: () => socket?.terminate(),
  };
};
