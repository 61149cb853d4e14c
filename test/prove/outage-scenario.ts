// PostgreSQL is stopped under load: calls go on, first contacts too, changes are refused, and everything heals alone.
//
// Spec: R22, T1. Design: "Liveness: static stability first".

import { startFleet } from "@moor/testkit/fleet";
import type { FleetVerdict } from "@moor/testkit/fleet-verdict";
import { errorOf, type OperatorClient } from "@moor/testkit/operator-client";
import type { PostgresServer } from "@moor/testkit/postgres";
import { until } from "@moor/testkit/within";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { setStage, type Stage } from "./prove-stage.ts";
import { below, equals, faultClaims, type Pace, type Scenario } from "./scenario.ts";

export interface OutageRun {
  readonly load: FleetVerdict;
  /** Calls of tunnels that had neither agent nor caller at any node before the outage. */
  readonly firstContacts: FleetVerdict;
  /** Codes of the changes that were asked for while the database was away. */
  readonly refusals: readonly string[];
  /** What the refused were told, one text each. */
  readonly messages: readonly string[];
  /** Milliseconds from the database's return to the first change at the node that was last. */
  readonly healedAfterMs: number;
}

const runtime = createNodeRuntime();

/** Tunnels kept for first contacts. */
const FRESH_TUNNELS = 4;
/** Calls to each of them. */
const FRESH_CALLS_PER_S = 8;
/** Longest wait for a change to work again. Milliseconds. */
const HEAL_MS_MAX = 30_000;

/** Stops the database for `pace.outageMs` in the middle of a load. */
export async function runOutage(pace: Pace, server?: PostgresServer): Promise<OutageRun> {
  const own = server === undefined ? {} : { server };
  const stage = await setStage({ directory: "postgres", entryMode: "replica", ...own });
  try {
    const tunnels = await stage.cluster.createTunnels(pace.tunnels);
    const fresh = await stage.cluster.createTunnels(FRESH_TUNNELS);
    const fleet = await startFleet({ tunnels, endpoints: stage.endpoints });
    try {
      const { callsPerS, sdkClients } = pace;
      const load = await fleet.startRun({ callsPerS, sdkClients });
      await sleep(runtime, pace.outageMs / 4);
      await stage.postgres?.stop();
      const [firstContacts, refused] = await Promise.all([
        meetFresh(stage, fresh, pace.outageMs / 2),
        askChanges(
          stage,
          tunnels.map(({ id }) => id),
        ),
        sleep(runtime, pace.outageMs),
      ]);
      await stage.postgres?.start();
      const healedAfterMs = await heal(stage, tunnels[0]?.id ?? "");
      return { load: await load.finish(), firstContacts, ...refused, healedAfterMs };
    } finally {
      await fleet.stop();
    }
  } finally {
    await stage.strike();
  }
}

/** Agents and callers that no node has met before, each at another node than the other. */
async function meetFresh(
  { endpoints }: Stage,
  tunnels: Parameters<typeof startFleet>[0]["tunnels"],
  forMs: number,
): Promise<FleetVerdict> {
  const agentEndpoints = [...endpoints.slice(1), ...endpoints.slice(0, 1)];
  const fleet = await startFleet({ tunnels, endpoints, agentEndpoints, mix: "mixed" });
  try {
    const run = await fleet.startRun({ callsPerS: FRESH_CALLS_PER_S });
    await sleep(runtime, forMs);
    return await run.finish();
  } finally {
    await fleet.stop();
  }
}

/** One change of each kind at each node. */
async function askChanges(
  { operators, cluster }: Stage,
  tenants: readonly string[],
): Promise<Pick<OutageRun, "refusals" | "messages">> {
  const [tenant = ""] = tenants;
  const replies = await Promise.all(
    operators.flatMap((operator) => [
      operator.move(tenant, cluster.shards[0] ?? ""),
      operator.request("POST", "/v1/tunnels", {}),
      operator.request("PUT", "/v1/corrections", { on: false }),
    ]),
  );
  const errors = replies.map((reply) => errorOf(reply));
  return {
    refusals: errors.map((error) => error?.code ?? "accepted"),
    messages: [...new Set(errors.map((error) => error?.message ?? ""))],
  };
}

/** Waits until every node makes a change again. */
async function heal({ operators }: Stage, tenant: string): Promise<number> {
  const startMs = runtime.monotonicMs();
  const tryOne = async (operator: OperatorClient) => {
    await until(
      async () =>
        (await operator.request("POST", `/v1/tunnels/${tenant}`, { description: "healed" })).status === 200,
      "a change to work again",
      HEAL_MS_MAX,
    );
  };
  await Promise.all(operators.map(tryOne));
  return runtime.monotonicMs() - startMs;
}

/** The scenario. */
export const outageScenario: Scenario = {
  name: "outage-postgres",
  title: "PostgreSQL stopped under load: three nodes with replicas",
  needsPostgres: true,
  run: async (pace) => {
    const { load, firstContacts, refusals, messages, healedAfterMs } = await runOutage(pace);
    return {
      claims: [
        ...faultClaims("over the whole time", load),
        ...faultClaims("first contacts during the outage", firstContacts),
        equals(
          "every change is refused as directory_unavailable",
          [...new Set(refusals)].join(","),
          "directory_unavailable",
        ),
        below("changes work again by themselves", healedAfterMs, HEAL_MS_MAX, "ms after the return"),
      ],
      figures: {
        outageMs: pace.outageMs,
        calls: load.calls,
        callsOfFirstContacts: firstContacts.calls,
        ...load.latency,
        healedAfterMs: Math.round(healedAfterMs),
        refusal: messages.join(" / "),
      },
    };
  },
};
