// The token key of a residency is rotated under load: added, promoted, the old one retired.
//
// Spec: R23.   I1  Retiring re-stamps placements: every tunnel's revision rises, none of its calls fails.

import { startFleet } from "@moor/testkit/fleet";
import type { FleetVerdict } from "@moor/testkit/fleet-verdict";
import type { OperatorClient } from "@moor/testkit/operator-client";
import { until } from "@moor/testkit/within";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { measure } from "./moves-scenario.ts";
import { setStage, type StageOptions } from "./prove-stage.ts";
import { equals, faultClaims, type Pace, type Scenario } from "./scenario.ts";

export interface RotationRun {
  readonly verdict: FleetVerdict;
  /** Token keys that are left, by state. */
  readonly keysLeft: readonly string[];
  /** Tunnels whose revision rose. */
  readonly restamped: number;
}

interface TokenKey {
  readonly id: string;
  readonly state: string;
}

const runtime = createNodeRuntime();

/** Rotates the key in the middle of a load. */
export async function runRotation(options: StageOptions, pace: Pace): Promise<RotationRun> {
  const stage = await setStage(options);
  try {
    const [operator] = stage.operators as [OperatorClient];
    const tunnels = await stage.cluster.createTunnels(pace.tunnels);
    const fleet = await startFleet({ tunnels, endpoints: stage.endpoints, mix: "mixed" });
    try {
      const ids = tunnels.map(({ id }) => id);
      const before = await revisionsOf(operator, ids);
      await measure(fleet, pace, () => sleep(runtime, pace.warmUpMs));
      const verdict = await measure(fleet, pace, () => rotate(operator, pace.measuredMs / 4));
      const after = await revisionsOf(operator, ids);
      return {
        verdict,
        keysLeft: (await listTokenKeys(operator)).map(({ state }) => state),
        restamped: after.filter((revision, at) => revision > (before[at] ?? Infinity)).length,
      };
    } finally {
      await fleet.stop();
    }
  } finally {
    await stage.strike();
  }
}

/** Adds a key, lets it seal, retires the old ones; `pauseMs` before, between and after. */
async function rotate(operator: OperatorClient, pauseMs: number): Promise<void> {
  const old = await listTokenKeys(operator);
  await sleep(runtime, pauseMs);
  const added = await operator.demand<TokenKey>("POST", "/v1/token-keys", { reason: "rotation" });
  await sleep(runtime, pauseMs);
  // Refused as long as a node is not known to have the key.
  const isPromoted = async () =>
    (await operator.request("POST", `/v1/token-keys/${added.id}/promote`, {})).status === 200;
  await until(isPromoted, "the new key to be promoted");
  await sleep(runtime, pauseMs);
  for (const { id } of old) await operator.demand("DELETE", `/v1/token-keys/${id}`);
  await sleep(runtime, pauseMs);
}

async function listTokenKeys(operator: OperatorClient): Promise<readonly TokenKey[]> {
  const { token_keys: keys } = await operator.demand<{ token_keys: readonly TokenKey[] }>(
    "GET",
    "/v1/token-keys",
  );
  return keys;
}

/** Revisions of `tenants` in a node's eyes, in their order; 0 = unknown there. */
export async function revisionsOf(operator: OperatorClient, tenants: readonly string[]): Promise<number[]> {
  return Promise.all(tenants.map(async (id) => (await operator.where(id))?.revision ?? 0));
}

/** The scenario on one directory, with bootstrap entries, whose clients go by tokens. */
export function rotationScenario(directory: StageOptions["directory"]): Scenario {
  return {
    name: `rotation-${directory}`,
    title: `Token key rotation under load: ${directory}, bootstrap entries, mixed agents`,
    needsPostgres: directory === "postgres",
    run: async (pace) => {
      const { verdict, keysLeft, restamped } = await runRotation({ directory, entryMode: "bootstrap" }, pace);
      return {
        claims: [
          ...faultClaims("while the key changes", verdict),
          equals("one key is left, and seals", keysLeft.join(","), "sealing"),
          equals("every placement was stamped anew", restamped, pace.tunnels),
        ],
        figures: { calls: verdict.calls, ...verdict.latency },
      };
    },
  };
}
