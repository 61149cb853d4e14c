// Two residencies on one machine: nothing of one opens, routes or shows in the other.

import { HEADER } from "@moor/protocol";
import { startCluster, until, verifies, type Cluster, type FleetTunnel } from "@moor/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callOnce, pollOnce, tunnelOn } from "./cluster-kit.ts";

const NAMES = ["global", "eu"] as const;

/** A capable poll of an agent that no node has met. */
function poll(
  endpoint: string,
  tunnel: FleetTunnel,
  options: { key?: string; token?: string } = {},
): Promise<Response> {
  return pollOnce(endpoint, tunnel, { isCapable: true, ...options });
}

async function errorCode(answer: Response): Promise<string> {
  return ((await answer.json()) as { error: { code: string } }).error.code;
}

describe("global and eu", () => {
  const clusters = new Map<string, Cluster>();
  const tunnels = new Map<string, FleetTunnel>();
  const of = (name: string) => clusters.get(name) as Cluster;
  const tunnelIn = (name: string) => tunnels.get(name) as FleetTunnel;

  beforeAll(async () => {
    await Promise.all(
      NAMES.map(async (residency) => {
        const cluster = await startCluster({
          residency,
          directory: "sqlite",
          corrections: true,
          // The same names on both sides: nothing but the residency tells them apart.
          nodes: [
            { id: "a", shards: ["s1", "s2"] },
            { id: "edge", entryMode: "bootstrap" },
          ],
        });
        clusters.set(residency, cluster);
        tunnels.set(residency, await tunnelOn(cluster, "s2"));
      }),
    );
  }, 60_000);

  afterAll(async () => {
    await Promise.all([...clusters.values()].map((cluster) => cluster.stop()));
  });

  for (const [here, there] of [NAMES, NAMES.toReversed()] as [string, string][]) {
    test(`${there}: tunnels and keys of ${here} are unknown, at every node, on every route`, async () => {
      const tunnel = tunnelIn(here);
      for (const { endpoint } of of(there).nodes) {
        expect((await poll(endpoint, tunnel)).status).toBe(401);
        expect((await poll(endpoint, tunnelIn(there), { key: tunnel.agentKey })).status).toBe(401);
        expect(await callOnce(endpoint, tunnel)).toEqual({
          kind: "refused",
          status: 404,
          code: "tunnel_not_found",
        });
        const mixed = { ...tunnelIn(there), connectorKey: tunnel.connectorKey };
        expect(await callOnce(endpoint, mixed)).toMatchObject({ kind: "refused", status: 401 });
      }
      const { operator } = of(there).node("a");
      expect(await operator.where(tunnel.id)).toBeUndefined();
      for (const list of ["/v1/tunnels", "/v1/keys", "/v1/moves", "/v1/nodes", "/v1/shards"]) {
        expect(JSON.stringify((await operator.request("GET", list)).body)).not.toContain(tunnel.id);
      }
      const move = await operator.move(tunnel.id, "s1");
      expect(move.status).toBe(404);
    });

    verifies(
      "R23",
      `${there}: a polling token of ${here} is treated as none, and nothing says why`,
      async () => {
        const foreign = (await poll(of(here).node("edge").endpoint, tunnelIn(here))).headers.get(
          HEADER.shardToken,
        );
        expect(foreign).not.toBeNull();
        const { endpoint } = of(there).node("edge");
        const [tokenless, withForeign] = [
          await poll(endpoint, tunnelIn(there)),
          await poll(endpoint, tunnelIn(there), { token: foreign ?? "" }),
        ];
        expect([tokenless.status, withForeign.status]).toEqual([409, 409]);
        expect(await withForeign.text()).toBe(await tokenless.text());
        expect(withForeign.headers.get(HEADER.shardToken)).toBe(tokenless.headers.get(HEADER.shardToken));
      },
    );

    verifies("T6", `${there}: an answer with a command token of ${here} is nobody's`, async () => {
      const tunnel = tunnelIn(here);
      const { endpoint } = of(here).node("a");
      expect((await poll(endpoint, tunnel)).status).toBe(204); // Its agent was there a moment ago.
      const pending = callOnce(endpoint, tunnel);
      const command = await until(async () => {
        const answer = await poll(endpoint, tunnel);
        return answer.status === 200 ? takeCommand(await answer.json()) : undefined;
      }, "the command to be handed out");
      const respond = (at: string, as: FleetTunnel) => answerWith(at, as, command);
      const foreign = await respond(of(there).node("a").endpoint, tunnelIn(there));
      expect([401, 404]).toContain(foreign.status);
      expect(["tunnel_request_mismatch", "pending_request_not_found"]).toContain(await errorCode(foreign));
      expect((await respond(endpoint, tunnel)).status).toBe(200);
      expect(await pending).toMatchObject({ kind: "answered" });
    });
  }

  test("a node of one residency gets no link to another's, and serves nothing by it", async () => {
    const internal = of("global").node("a");
    const { nodes } = await internal.operator.demand<NodeList>("GET", "/v1/nodes");
    const stray = await startCluster({
      residency: "eu",
      directory: "sqlite",
      nodes: [
        { id: "x", shards: ["s9"] },
        {
          id: "stray",
          entryMode: "bootstrap",
          settings: {
            internal: { peers: [{ id: "a", url: nodes.find(({ id }) => id === "a")?.internal_url }] },
          },
        },
      ],
    });
    try {
      const lost = stray.node("stray");
      await until(
        () => lost.events().some((event) => event.event.startsWith("peer-") && event["peer"] === "a"),
        "the stray edge to be refused",
      );
      expect(lost.events("peer-up").filter((event) => event["peer"] === "a")).toEqual([]);
      expect(await callOnce(lost.endpoint, tunnelIn("global"))).toMatchObject({
        kind: "refused",
        status: 503,
      });
    } finally {
      await stray.stop();
    }
  });
});

interface NodeList {
  readonly nodes: readonly { readonly id: string; readonly internal_url: string }[];
}

interface TakenCommand {
  readonly request_id: string;
  readonly shard_token: string;
  readonly jsonrpc: { readonly id: string };
}

function takeCommand(body: unknown): TakenCommand | undefined {
  return (body as { readonly commands: readonly TakenCommand[] }).commands[0];
}

function answerWith(endpoint: string, tunnel: FleetTunnel, command: TakenCommand): Promise<Response> {
  const { id } = command.jsonrpc;
  const result = { content: [{ type: "text", text: id }] };
  return fetch(`${endpoint}/v1/tunnels/${tunnel.id}/response`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${tunnel.agentKey}`,
      "content-type": "application/json",
      [HEADER.instanceId]: "e".repeat(32),
      [HEADER.shardToken]: command.shard_token,
    },
    body: JSON.stringify({ request_id: command.request_id, resp_json: { jsonrpc: "2.0", id, result } }),
  });
}
