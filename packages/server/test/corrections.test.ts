import { beforeEach, describe, expect } from "vitest";
import { parseCorrection } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import type { FakeExchange } from "./support/fake-exchange.ts";
import {
  callRequest,
  commandsOf,
  INSTANCE_A,
  INSTANCE_B,
  pollRequest,
  responseRequest,
  commandOf,
} from "./support/requests.ts";
import { SimulatedCluster } from "./support/simulated-cluster.ts";

const CAPABLE = ["X-Tunnel-Client-Capabilities", "other, wrong-cluster-v1"];
const TOKEN = "X-Tunnel-Shard-Token";

type Tunnel = Awaited<ReturnType<SimulatedCluster["tunnel"]>>;

/** What a client reads from an answer. */
function correctionOf(poll: FakeExchange) {
  const headerLines = Object.entries(poll.headers).map(([name, value]) => [name, String(value)] as const);
  return parseCorrection({ status: poll.status ?? 0, headerLines }, Buffer.concat(poll.chunks), true);
}

describe("corrections at a bootstrap entry", () => {
  let cluster: SimulatedCluster;
  let made: Tunnel;

  beforeEach(async () => {
    cluster = await startCluster(true);
    made = await cluster.tunnel("s2");
  });

  async function startCluster(isCorrecting: boolean): Promise<SimulatedCluster> {
    const started = new SimulatedCluster({
      isCorrecting,
      nodes: [
        { id: "a", shards: ["s1"] },
        { id: "b", shards: ["s2"] },
        { id: "e", shards: [], isBootstrap: true },
      ],
    });
    await started.advance(1_000);
    return started;
  }

  async function poll(headers: readonly string[], options: { instance?: string; at?: string } = {}) {
    const { tunnel, agentKey } = made;
    const request = pollRequest(tunnel, agentKey, { headers, instance: options.instance ?? INSTANCE_A });
    const exchange = await cluster.send(options.at ?? "e", request);
    await cluster.advance(100);
    return exchange;
  }

  async function correctedToken(): Promise<string> {
    const read = correctionOf(await poll(CAPABLE));
    if (!read.ok) throw new Error(read.reason);
    return read.token;
  }

  verifies(
    ["R4", "R5"],
    "a capable tokenless poll gets exactly a correction, and its token is served",
    async () => {
      const corrected = await poll(CAPABLE);
      const { revision } = made.tunnel.placement;
      expect(corrected.status).toBe(409);
      expect(corrected.text).toBe(`{"error":{"code":"wrong_cluster","policy_revision":${revision}}}`);
      expect(corrected.headers).toMatchObject({
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
      });
      const read = correctionOf(corrected);
      expect(read).toMatchObject({ ok: true, revision });
      const followed = await poll([...CAPABLE, TOKEN, read.ok ? read.token : ""]);
      expect(followed.status).toBeUndefined();
    },
  );

  verifies(
    ["R3", "R24"],
    "a poll that does not declare the capability itself is served through the owner",
    async () => {
      await poll(CAPABLE); // The same instance declared it a moment ago: that counts for nothing.
      const plain = await poll([]);
      const call = await cluster.send("a", callRequest(made.tunnel, made.connectorKey));
      await cluster.advance(100);
      expect(commandsOf(plain)).toHaveLength(1);
      const fields = { resp_json: { jsonrpc: "2.0", id: 1, result: {} } };
      await cluster.send(
        "e",
        responseRequest(made.tunnel, made.agentKey, { command: commandOf(plain), fields }),
      );
      await cluster.advance(100);
      expect(call.status).toBe(200);
    },
  );

  verifies(
    "R4",
    "a corrected poll consumes no command, and one without a right key or parameters is not corrected",
    async () => {
      await poll([]); // Seen once; its wait goes on.
      await cluster.advance(26_000);
      const call = await cluster.send("a", callRequest(made.tunnel, made.connectorKey));
      await cluster.advance(100);
      const token = await correctedToken();
      const followed = await poll([...CAPABLE, TOKEN, token]);
      expect(commandsOf(followed)).toHaveLength(1);
      expect(call.status).toBeUndefined();
      const other = await cluster.tunnel("s1");
      const wrongKey = await cluster.send(
        "e",
        pollRequest(made.tunnel, other.agentKey, { headers: CAPABLE }),
      );
      const wrongLimit = await cluster.send(
        "e",
        pollRequest(made.tunnel, made.agentKey, { headers: CAPABLE, query: "limit=x" }),
      );
      await cluster.advance(100);
      expect([wrongKey.status, wrongLimit.status]).toEqual([403, 400]);
    },
  );

  verifies(
    ["R4", "R25"],
    "with the switch off the protocol does not exist; tokens already out stay hints",
    async () => {
      const token = await correctedToken();
      cluster.truth.isCorrecting = false;
      // Peers tell a bootstrap entry of the switch; here it is told anew by starting.
      cluster.start(cluster.crash("e"));
      await cluster.advance(5_000);
      expect((await poll(CAPABLE)).status).toBeUndefined();
      expect((await poll([...CAPABLE, TOKEN, token], { instance: INSTANCE_B })).status).toBeUndefined();
    },
  );

  verifies("R24", "three tokenless corrections, then service; a service begins the count anew", async () => {
    for (const status of [409, 409, 409, undefined]) expect((await poll(CAPABLE)).status).toBe(status);
    expect((await poll(CAPABLE, { instance: INSTANCE_B })).status).toBe(409);
    await cluster.advance(26_000); // The fourth ended 204: it was served.
    expect((await poll(CAPABLE)).status).toBe(409);
  });

  verifies("R24", "the count is forgotten after 10 minutes", async () => {
    for (const status of [409, 409, 409]) expect((await poll(CAPABLE)).status).toBe(status);
    await cluster.advance(10 * 60_000 + 1);
    expect((await poll(CAPABLE)).status).toBe(409);
  });

  verifies("R24", "a token at the revision we would send, or above, is served", async () => {
    const old = await correctedToken();
    cluster.node("a").replica?.setCut(true);
    cluster.node("b").replica?.setCut(true);
    cluster.truth.move(made.tunnel.id, "s1");
    await cluster.advance(100);
    // Nobody here knows of the move: the older token is as new as anything.
    expect((await poll([...CAPABLE, TOKEN, old])).status).toBeUndefined();
    cluster.node("a").replica?.setCut(false);
    cluster.node("b").replica?.setCut(false);
    await cluster.advance(100);
    const corrected = correctionOf(await poll([...CAPABLE, TOKEN, old]));
    expect(corrected).toMatchObject({
      ok: true,
      revision: cluster.truth.tunnel(made.tunnel.id)?.placement.revision,
    });
    cluster.node("a").replica?.setCut(true);
    cluster.node("b").replica?.setCut(true);
    const newer = corrected.ok ? corrected.token : "";
    expect((await poll([...CAPABLE, TOKEN, newer])).status).toBeUndefined();
  });

  verifies(
    ["R4", "R21"],
    "a waiting poll ends in a correction when its tunnel moves, and no command is lost by it",
    async () => {
      const token = await correctedToken();
      const waiting = await poll([...CAPABLE, TOKEN, token]);
      cluster.move("a", made.tunnel.id, "s1");
      await cluster.advance(100);
      const read = correctionOf(waiting);
      expect(read.ok).toBe(true);
      const call = await cluster.send("e", callRequest(made.tunnel, made.connectorKey));
      const followed = await poll([...CAPABLE, TOKEN, read.ok ? read.token : ""]);
      expect(commandsOf(followed)).toHaveLength(1);
      expect(call.status).toBeUndefined();
    },
  );

  verifies(
    "R24",
    "a waiting poll of a client without the capability follows the move in silence",
    async () => {
      const waiting = await poll([]);
      cluster.move("a", made.tunnel.id, "s1");
      await cluster.advance(100);
      await cluster.send("b", callRequest(made.tunnel, made.connectorKey));
      await cluster.advance(100);
      expect(commandsOf(waiting)).toHaveLength(1);
    },
  );

  verifies(
    "R23",
    "a token that does not open, and two tokens, are as none: corrected like a tokenless poll",
    async () => {
      const token = await correctedToken();
      for (const lines of [
        [TOKEN, `${token}x`],
        [TOKEN, "nonsense"],
        [TOKEN, token, TOKEN, token],
      ]) {
        expect((await poll([...CAPABLE, ...lines], { instance: "d".repeat(32) })).status).toBe(409);
      }
    },
  );

  verifies("R24", "an entry with a replica corrects nobody", async () => {
    for (const at of ["a", "b"]) expect((await poll(CAPABLE, { at })).status).toBeUndefined();
  });

  verifies(
    "R24",
    "without a node in reach it waits for one up to 10 s, then says 503 with Retry-After",
    async () => {
      const specs = ["a", "b"].map((id) => cluster.crash(id));
      await cluster.advance(100);
      const waiting = await poll([]);
      await cluster.advance(5_000);
      expect(waiting.status).toBeUndefined();
      for (const spec of specs) cluster.start(spec);
      await cluster.advance(4_000);
      await cluster.send("a", callRequest(made.tunnel, made.connectorKey));
      await cluster.advance(100);
      expect(commandsOf(waiting)).toHaveLength(1);
      for (const id of ["a", "b"]) cluster.crash(id);
      await cluster.advance(100);
      const lost = await poll([]);
      await cluster.advance(11_000);
      expect([lost.status, lost.errorCode, lost.headers["Retry-After"]]).toEqual([
        503,
        "tunnel_transport_unavailable",
        "1",
      ]);
    },
  );
});
