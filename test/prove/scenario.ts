// What every scenario of `npm run prove` is: a cluster, a load, and claims that were kept or not.
//
// I1  A claim is about counts or about a stated bound; figures beside it are for the reader.

import { faultsOf, type FleetVerdict } from "@moor/testkit/fleet-verdict";

/** How long and how hard a scenario runs. */
export interface Pace {
  /** Time a load runs before anything is measured: everything is compiled and connected then. Milliseconds. */
  readonly warmUpMs: number;
  /** Time a load is measured for. Milliseconds. */
  readonly measuredMs: number;
  /** Times each tunnel is moved in that time. */
  readonly moveTimes: number;
  readonly tunnels: number;
  /** Raw calls a second over all tunnels. */
  readonly callsPerS: number;
  /** Official SDK clients beside them. */
  readonly sdkClients: number;
  /** Time the database is away. Milliseconds. */
  readonly outageMs: number;
  /** Tunnels of the scenario about large directories. */
  readonly scaleTunnels: number;
  readonly links: LinksPace;
}

/** The same for links. */
export interface LinksPace {
  /** Boxes on the shard that is restarted. */
  readonly restartBoxes: number;
  /** Spread of a restart. Milliseconds. */
  readonly spreadMs: number;
  /** Links whose memory is measured, plain and over TLS. */
  readonly memoryLinks: number;
  readonly tlsLinks: number;
  /** Time handshakes are counted for. Milliseconds. */
  readonly handshakesMs: number;
  /** Time wrong hellos come for. Milliseconds. */
  readonly floodMs: number;
  /** Homes that are moved under commands, times each is moved, commands a second, and the time of it all. A client that is
   *  redirected again within 10 s waits before it follows (L17): more moves than that would measure its backoff. */
  readonly movedHomes: number;
  readonly moveTimes: number;
  readonly commandsPerS: number;
  readonly commandsMs: number;
  /** Time commands are sent after the service has seen through two boxes with one identity. Milliseconds. */
  readonly duplicateMs: number;
}

/** What issue and design promise: 60 s, 150 calls/s, every tunnel moved 10 times. */
export const FULL_PACE: Pace = {
  warmUpMs: 3_000,
  measuredMs: 60_000,
  moveTimes: 10,
  tunnels: 20,
  callsPerS: 150,
  sdkClients: 4,
  outageMs: 60_000,
  scaleTunnels: 100_000,
  links: {
    restartBoxes: 5_000,
    spreadMs: 20_000,
    memoryLinks: 10_000,
    tlsLinks: 2_000,
    handshakesMs: 20_000,
    floodMs: 30_000,
    movedHomes: 20,
    moveTimes: 4,
    commandsPerS: 50,
    commandsMs: 60_000,
    duplicateMs: 60_000,
  },
};

/** Seconds instead of minutes, the rates as they are. */
export const QUICK_PACE: Pace = {
  ...FULL_PACE,
  measuredMs: 6_000,
  moveTimes: 2,
  outageMs: 6_000,
  scaleTunnels: 5_000,
  links: {
    ...FULL_PACE.links,
    restartBoxes: 600,
    spreadMs: 4_000,
    memoryLinks: 2_000,
    tlsLinks: 200,
    handshakesMs: 3_000,
    floodMs: 4_000,
    movedHomes: 4,
    moveTimes: 3,
    commandsMs: 8_000,
    duplicateMs: 5_000,
  },
};

/** One thing a scenario is to show. */
export interface Claim {
  readonly claim: string;
  readonly isKept: boolean;
  /** What was seen. */
  readonly seen: string;
}

/** What a scenario came to. */
export interface ScenarioResult {
  readonly claims: readonly Claim[];
  /** Counts and times for the reader, units in their names. */
  readonly figures: Readonly<Record<string, number | string>>;
}

/** A scenario by its name on the command line. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** Whether it needs the PostgreSQL binaries of the tests. */
  readonly needsPostgres: boolean;
  run(pace: Pace): Promise<ScenarioResult>;
}

/** A claim that a number is what it should be. */
export function equals(claim: string, got: number | string, expected: number | string): Claim {
  return { claim, isKept: got === expected, seen: String(got) };
}

/** A claim that a number is below a bound. */
export function below(claim: string, got: number, bound: number, unit: string): Claim {
  return { claim, isKept: got < bound, seen: `${Math.round(got * 10) / 10} ${unit}` };
}

/** A claim for each kind of fault a run may have. */
export function faultClaims(when: string, verdict: FleetVerdict): readonly Claim[] {
  const { failures } = verdict;
  const why = failures.map(({ kind, count }) => `${count} × ${kind}`).join("; ");
  return Object.entries(faultsOf(verdict)).map(([fault, count]) => ({
    claim: `${when}: ${FAULT_WORDS[fault] ?? fault}: 0 of ${verdict.calls}`,
    isKept: count === 0 && verdict.calls > 0,
    seen: fault === "failed" && count > 0 ? `${count} (${why})` : String(count),
  }));
}

const FAULT_WORDS: Readonly<Record<string, string>> = {
  failed: "calls failed",
  executedTwice: "calls executed twice",
  answeredUnexecuted: "calls answered and not executed",
  executedElsewhere: "calls executed behind another tunnel",
  lostNotifications: "notifications lost before a final",
};
