// A fleet of link clients in processes of their own, so that neither their memory nor their CPU time is the server's.
//
// Spec: L15, L16, L24.   I1  A client's number is unique in the fleet, whatever process it lives in.

import type { CrowdClient, CrowdOrder } from "./link-crowd.ts";
import { startLinkFleetProcess } from "./link-fleet-process.ts";
import type { LinkEvent } from "./link-journal.ts";
import type { FloodDone, FloodOrder, HandshakesDone, HandshakesOrder } from "./link-load.ts";
import { until } from "./within.ts";

/** What a fleet is started with. */
export interface LinkFleetOptions extends Omit<CrowdOrder, "clients"> {
  readonly clients: readonly Omit<CrowdClient, "client">[];
  /** Processes the clients are spread over. Default: as many as hold at most 5,000 each. */
  readonly processes?: number;
}

/** Clients under way. */
export interface LinkFleet {
  readonly clientCount: number;
  /** Ids of its processes. */
  readonly pids: readonly number[];
  /** Clients that are online now. */
  countOnline(): Promise<number>;
  /** Resolves when `count` clients (default: all) are online at a time. */
  untilOnline(deadlineMs?: number, count?: number): Promise<void>;
  /** Everything that has happened to them. */
  journal(): Promise<readonly LinkEvent[]>;
  /** Ends all links, then the processes. */
  stop(): Promise<void>;
  /** SIGKILL to the processes, as a power cut. */
  kill(): Promise<void>;
}

/** A client's link costs one descriptor, and one core serves about as many dials as one server takes. */
const CLIENTS_PER_PROCESS = 5_000;
const ONLINE_MS_DEFAULT = 120_000;
/** What a load may take longer than ordered, for its last endings. Milliseconds. */
const LOAD_END_MS = 60_000;

/** Starts the processes and the clients; resolves when all have been told to dial, not when they are online. */
export async function startLinkFleet(options: LinkFleetOptions): Promise<LinkFleet> {
  const { clients, processes, dialsPerS, ...order } = options;
  const numbered = clients.map((client, at) => ({ ...client, client: at }));
  const count = processes ?? Math.max(1, Math.ceil(clients.length / CLIENTS_PER_PROCESS));
  const members = await Promise.all(Array.from({ length: count }, startLinkFleetProcess));
  const crowds = await Promise.all(
    members.map(async (member, at) => {
      const own = numbered.filter(({ client }) => client % count === at);
      const crowd: CrowdOrder = { ...order, clients: own, dialsPerS: dialsPerS / count };
      const started = await member.ask({ do: "start", crowd }, "started");
      return { member, number: started.crowd };
    }),
  );
  const countOnline = async () => {
    const counts = await Promise.all(
      crowds.map(({ member, number }) => member.ask({ do: "count", crowd: number }, "counted")),
    );
    return counts.reduce((sum, { online }) => sum + online, 0);
  };
  const kill = async () => {
    await Promise.all(members.map(({ process }) => process.kill()));
  };
  return {
    clientCount: clients.length,
    pids: members.map(({ process }) => process.pid),
    countOnline,
    untilOnline: async (deadlineMs = ONLINE_MS_DEFAULT, wanted = clients.length) => {
      await until(async () => (await countOnline()) >= wanted, `${wanted} clients to be online`, deadlineMs);
    },
    journal: async () => {
      const journals = crowds.map(({ member, number }) =>
        member.ask({ do: "journal", crowd: number }, "journal"),
      );
      return (await Promise.all(journals)).flatMap(({ events }) => events);
    },
    stop: async () => {
      await Promise.all(
        crowds.map(({ member, number }) => member.ask({ do: "stop", crowd: number }, "stopped")),
      );
      await kill();
    },
    kill,
  };
}

/** Runs handshakes from a process of their own. */
export async function shakeHands(handshakes: HandshakesOrder): Promise<HandshakesDone> {
  const member = await startLinkFleetProcess();
  try {
    return (await member.ask({ do: "shake", handshakes }, "shaken", handshakes.forMs + LOAD_END_MS)).done;
  } finally {
    await member.process.kill();
  }
}

/** Sends wrong hellos from a process of their own. */
export async function floodHellos(flood: FloodOrder): Promise<FloodDone> {
  const member = await startLinkFleetProcess();
  try {
    return (await member.ask({ do: "flood", flood }, "flooded", flood.forMs + LOAD_END_MS)).done;
  } finally {
    await member.process.kill();
  }
}
