// Polling tokens of several nodes: one string a revision, from whoever and whenever; a rotation hurts nobody.

import { HEADER } from "@moor/protocol";
import { faultsOf, NO_FAULTS, until, verifies, type Cluster, type FleetTunnel } from "@moor/testkit";
import { expect } from "vitest";
import { runRotation } from "../prove/key-rotation-scenario.ts";
import { place, pollOnce, SHORT_PACE, startTestCluster, tunnelOn } from "./cluster-kit.ts";

interface TokenKey {
  readonly id: string;
}

/** The token that a capable, tokenless poll of a new agent is corrected with. */
async function tokenFrom(endpoint: string, tunnel: FleetTunnel): Promise<string> {
  const answer = await poll(endpoint, tunnel);
  expect(answer.status).toBe(409);
  return answer.headers.get(HEADER.shardToken) ?? "";
}

/** A capable poll of an agent that no node has met. */
function poll(endpoint: string, tunnel: FleetTunnel, token?: string): Promise<Response> {
  return pollOnce(endpoint, tunnel, { isCapable: true, ...(token === undefined ? {} : { token }) });
}

async function tokensOf(cluster: Cluster, tunnel: FleetTunnel): Promise<string[]> {
  const edges = cluster.nodes.filter((node) => node.isBootstrap);
  return Promise.all(edges.map(({ endpoint }) => tokenFrom(endpoint, tunnel)));
}

verifies(
  ["R5", "R23"],
  "one tunnel at one revision has one token, from every node, before and after a rotation; a retired key's is none",
  async () => {
    const cluster = await startTestCluster({
      corrections: true,
      nodes: [
        { id: "a", shards: ["s1", "s2"] },
        { id: "edge1", entryMode: "bootstrap" },
        { id: "edge2", entryMode: "bootstrap" },
      ],
    });
    const { operator } = cluster.node("a");
    const { endpoint } = cluster.node("edge1");
    const tunnel = await tunnelOn(cluster, "s2");
    const other = await tunnelOn(cluster, "s2");
    const [token = "", twin] = await tokensOf(cluster, tunnel);
    expect(twin).toBe(token);
    expect((await poll(endpoint, tunnel, token)).status).toBe(204);
    expect((await tokensOf(cluster, other))[0]).not.toBe(token);

    const { token_keys: old } = await operator.demand<{ token_keys: readonly TokenKey[] }>(
      "GET",
      "/v1/token-keys",
    );
    const added = await operator.demand<TokenKey>("POST", "/v1/token-keys", {});
    await operator.demand("POST", `/v1/token-keys/${added.id}/promote`, {});
    expect(await tokensOf(cluster, tunnel)).toEqual([token, token]);

    const before = await operator.where(tunnel.id);
    for (const { id } of old) await operator.demand("DELETE", `/v1/token-keys/${id}`);
    const after = await operator.where(tunnel.id);
    expect(after?.revision).toBeGreaterThan(before?.revision ?? Infinity);
    // The old token is treated as none: corrected like a tokenless poll, with the one token of the new revision.
    const corrected = await until(async () => {
      const answer = await poll(endpoint, tunnel, token);
      return answer.status === 409 ? answer : undefined;
    }, "the edge to hear of the new revision");
    const [fresh, freshTwin] = await tokensOf(cluster, tunnel);
    expect(corrected.headers.get(HEADER.shardToken)).toBe(fresh);
    expect([freshTwin === fresh, fresh === token]).toEqual([true, false]);
    await place(cluster, tunnel, "s1");
    expect(await tokensOf(cluster, tunnel)).not.toContain(fresh);
  },
);

verifies(
  "R23",
  "a rotation under load hurts no call and stamps every placement anew",
  async () => {
    const { verdict, keysLeft, restamped } = await runRotation(
      { directory: "sqlite", entryMode: "bootstrap" },
      SHORT_PACE,
    );
    expect({ failures: verdict.failures, ...faultsOf(verdict) }).toEqual({ failures: [], ...NO_FAULTS });
    expect({ keysLeft, restamped }).toEqual({ keysLeft: ["sealing"], restamped: SHORT_PACE.tunnels });
  },
  120_000,
);
