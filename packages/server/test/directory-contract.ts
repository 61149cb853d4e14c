// What every Directory and Replica must do, whatever stores them: a suite over a function that opens an empty one.

import { parseTunnelId, type ErrorCode, type TunnelId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  parseShardId,
  type Change,
  type Directory,
  type NodeRegistered,
  type Replica,
  type ShardId,
} from "../src/directory/directory.ts";
import { parseKey } from "../src/directory/keys.ts";

/** An open, empty directory that a test works on and then closes with what it stands on. */
export interface OpenedForTest {
  readonly directory: Directory;
  readonly replica: Replica;
  /** Moves the database's clock, where a test can. */
  readonly jumpWallClock?: (deltaMs: number) => void;
  /** Changes rows of the authority behind its back. */
  readonly tamper: (sql: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Opens an empty directory. */
export type OpenForTest = () => Promise<OpenedForTest>;

export const UNKNOWN_TUNNEL = parseTunnelId(`tunnel_${"0".repeat(32)}`) as TunnelId;

export function shardId(text: string): ShardId {
  return parseShardId(text) as ShardId;
}

/** Registers node `n1` with shards of these names. */
export function registerShards(directory: Directory, ...names: string[]): Promise<NodeRegistered> {
  const shards = names.map((name) => ({ id: shardId(name), publicHost: `${name}.test` }));
  return directory.registerNode({ id: "n1", incarnation: "i1", shards });
}

/** Expects a ProtocolError of `code`. */
export async function expectCode(promise: Promise<unknown>, code: ErrorCode): Promise<void> {
  await expect(promise).rejects.toMatchObject({ name: "ProtocolError", code });
}

/** Declares the suite. */
export function directoryContract(name: string, open: OpenForTest): void {
  describe(`${name} keeps the directory contract`, () => {
    let opened: OpenedForTest;
    let directory: Directory;
    let replica: Replica;

    beforeEach(async () => {
      opened = await open();
      ({ directory, replica } = opened);
      await registerShards(directory, "s1", "s2");
    });

    afterEach(() => opened.close());

    const hashOf = (text: string | undefined) => parseKey(text ?? "")?.hash ?? new Uint8Array(32);

    test("a new tunnel has the defaults, a live shard and working keys", async () => {
      const { tunnel, agentKey, connectorKey } = await directory.createTunnel({});
      expect(tunnel).toMatchObject({ description: "", access: "key", deadlineMs: 55_000, isSeen: false });
      expect(tunnel.name).toBe(`tunnel-${tunnel.id.slice(7, 15)}`);
      expect(["s1", "s2"]).toContain(tunnel.placement.shard);
      expect(Number.isSafeInteger(tunnel.createdAtMs)).toBe(true);
      expect(tunnel.placement).toMatchObject({ tokenKey: replica.sealingKeys()[0]?.id, tokenFormat: 1 });
      expect(replica.tunnel(tunnel.id)).toEqual(tunnel);
      expect(replica.keyByHash(hashOf(agentKey.reveal()))).toMatchObject({
        kind: "agent",
        tenant: tunnel.id,
      });
      expect(replica.keyByHash(hashOf(connectorKey?.reveal()))).toMatchObject({
        kind: "connector",
        tenant: tunnel.id,
      });
    });

    verifies("T1", "minted tunnel ids are tunnel_ and 32 hexadecimal digits, and differ", async () => {
      const ids = new Set<string>();
      for (let count = 0; count < 20; count += 1) ids.add((await directory.createTunnel({})).tunnel.id);
      expect(ids.size).toBe(20);
      for (const id of ids) expect(id).toMatch(/^tunnel_[0-9a-f]{32}$/);
    });

    test.each(["passthrough", "open"] as const)("access %s comes without a connector key", async (access) => {
      const { tunnel, connectorKey } = await directory.createTunnel({ access });
      expect(connectorKey).toBeNull();
      const keys = await directory.listKeys({ tunnel: tunnel.id, limit: 10 });
      expect(keys.items.map((key) => key.kind)).toEqual(["agent"]);
    });

    test("tunnels spread over the live shards", async () => {
      const created = await Promise.all(Array.from({ length: 60 }, () => directory.createTunnel({})));
      const onFirst = created.filter(({ tunnel }) => tunnel.placement.shard === "s1").length;
      expect(onFirst).toBeGreaterThan(10);
      expect(onFirst).toBeLessThan(50);
    });

    test.each([
      ["name", { name: "" }],
      ["name", { name: "a".repeat(129) }],
      ["name", { name: "two\nlines" }],
      ["name", { name: "half \ud800 a character" }],
      ["description", { description: "a".repeat(1_025) }],
      ["deadline", { deadlineMs: 999 }],
      ["deadline", { deadlineMs: 900_001 }],
      ["deadline", { deadlineMs: 1_500.5 }],
    ])("a %s out of range is refused, on creating and on updating", async (param, input) => {
      const { tunnel } = await directory.createTunnel({});
      for (const refusal of [directory.createTunnel(input), directory.updateTunnel(tunnel.id, input)]) {
        await expect(refusal).rejects.toMatchObject({ code: "invalid_request", param });
      }
    });

    test("an update changes the fields given and leaves the others", async () => {
      const { tunnel } = await directory.createTunnel({ name: "first", description: "kept" });
      const updated = await directory.updateTunnel(tunnel.id, { name: "second", deadlineMs: 120_000 });
      expect(updated).toEqual({ ...tunnel, name: "second", deadlineMs: 120_000 });
      expect(replica.tunnel(tunnel.id)).toEqual(updated);
      await expectCode(directory.updateTunnel(UNKNOWN_TUNNEL, { name: "x" }), "tunnel_not_found");
    });

    test("a deleted tunnel is gone with its keys", async () => {
      const { tunnel, agentKey } = await directory.createTunnel({});
      const other = await directory.createTunnel({});
      const keys = await directory.listKeys({ tunnel: tunnel.id, limit: 10 });
      expect(replica.keyByHash(hashOf(agentKey.reveal()))).toBeDefined();
      const heard: string[] = [];
      replica.onChange((change) => void heard.push(`${change.kind} ${change.id}`));
      await directory.deleteTunnel(tunnel.id);
      const keyTombstones = keys.items.map((key) => `key ${key.id}`);
      expect(heard.toSorted()).toEqual(
        [...keyTombstones, `placement ${tunnel.id}`, `tunnel ${tunnel.id}`].toSorted(),
      );
      expect(replica.tunnel(tunnel.id)).toBeUndefined();
      expect(replica.keyByHash(hashOf(agentKey.reveal()))).toBeUndefined();
      expect(replica.keyByHash(hashOf(other.agentKey.reveal()))).toBeDefined();
      await expectCode(directory.getTunnel(tunnel.id), "tunnel_not_found");
      await expectCode(directory.deleteTunnel(tunnel.id), "tunnel_not_found");
      await expectCode(directory.createKey({ tunnel: tunnel.id, kind: "agent" }), "tunnel_not_found");
    });

    verifies("T2", "a tunnel has several keys, and revoking one leaves the others", async () => {
      const { tunnel, agentKey } = await directory.createTunnel({});
      const second = await directory.createKey({ tunnel: tunnel.id, kind: "agent", label: "rotation" });
      expect(second.record).toMatchObject({ kind: "agent", label: "rotation", isRevoked: false });
      const first = replica.keyByHash(hashOf(agentKey.reveal()));
      const revoked = await directory.revokeKey(first?.id ?? "");
      expect(revoked.isRevoked).toBe(true);
      expect(replica.keyByHash(hashOf(agentKey.reveal()))).toBeUndefined();
      expect(replica.keyByHash(hashOf(second.key.reveal()))?.id).toBe(second.record.id);
      expect(replica.key(revoked.id)?.isRevoked).toBe(true);
    });

    test("revoking twice does nothing more, revoking an unknown key is refused", async () => {
      const { tunnel } = await directory.createTunnel({});
      const { record } = await directory.createKey({ tunnel: tunnel.id, kind: "connector" });
      await directory.revokeKey(record.id);
      const seq = replica.seq;
      await directory.revokeKey(record.id);
      expect(replica.seq).toBe(seq);
      await expectCode(directory.revokeKey("key_000000000000000000000000"), "key_not_found");
    });

    test("lists go through everything once, page by page", async () => {
      const made = await Promise.all(Array.from({ length: 7 }, () => directory.createTunnel({})));
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await directory.listTunnels(after === undefined ? { limit: 3 } : { limit: 3, after });
        seen.push(...page.items.map((tunnel) => tunnel.id));
        after = page.next ?? undefined;
      } while (after !== undefined);
      expect(seen).toEqual(made.map(({ tunnel }) => tunnel.id).toSorted());
      expect((await directory.listTunnels({ limit: 7 })).next).toBeNull();
      expect((await directory.listKeys({ limit: 500 })).items).toHaveLength(14);
    });

    test.each([
      { limit: 0 },
      { limit: 501 },
      { limit: 1.5 },
      { limit: 1, after: "" },
      { limit: 1, after: "not one!" },
    ])("the page request %j is refused", async (page) => {
      await expectCode(directory.listTunnels(page), "invalid_request");
      await expectCode(directory.listKeys(page), "invalid_request");
    });

    test("each change is readable when a listener hears of it, in order, before its promise resolves", async () => {
      const heard: Change[] = [];
      const names: (string | undefined)[] = [];
      const stop = replica.onChange((change) => {
        heard.push(change);
        if (change.kind === "tunnel") names.push(replica.tunnel(change.id)?.name);
      });
      const { tunnel } = await directory.createTunnel({ name: "one" });
      expect(heard.map((change) => change.kind).toSorted()).toEqual(["key", "key", "placement", "tunnel"]);
      await directory.updateTunnel(tunnel.id, { name: "two" });
      await directory.deleteTunnel(tunnel.id);
      expect(names).toEqual(["one", "two", undefined]);
      const seqs = heard.map((change) => change.seq);
      expect(seqs).toEqual(seqs.toSorted((left, right) => left - right));
      expect(new Set(seqs).size).toBe(seqs.length);
      expect(replica.seq).toBe(seqs.at(-1));
      stop();
      await directory.createTunnel({});
      expect(heard).toHaveLength(seqs.length);
    });

    test("a listener that throws harms neither the change nor other listeners", async () => {
      let heardCount = 0;
      replica.onChange(() => {
        throw new Error("a listener's own bug");
      });
      replica.onChange(() => void (heardCount += 1));
      await directory.createTunnel({});
      expect(heardCount).toBe(4);
    });

    test("a refused mutation leaves no change and no row", async () => {
      const { seq } = replica;
      await expectCode(directory.createKey({ tunnel: UNKNOWN_TUNNEL, kind: "agent" }), "tunnel_not_found");
      expect(replica.seq).toBe(seq);
      expect((await directory.listKeys({ limit: 10 })).items).toEqual([]);
    });

    verifies(
      "T12",
      "a tunnel that an agent polled once is seen for ever, and noting it again changes nothing",
      async () => {
        const { tunnel } = await directory.createTunnel({});
        const other = await directory.createTunnel({});
        await directory.recordSeen([tunnel.id, UNKNOWN_TUNNEL]);
        expect(replica.tunnel(tunnel.id)?.isSeen).toBe(true);
        expect(replica.tunnel(other.tunnel.id)?.isSeen).toBe(false);
        const { seq } = replica;
        await directory.recordSeen([tunnel.id, tunnel.id]);
        expect(replica.seq).toBe(seq);
      },
    );

    test("a node that drops a shard has its tenants placed on the rest, at a higher revision", async () => {
      const created = await Promise.all(Array.from({ length: 20 }, () => directory.createTunnel({})));
      await registerShards(directory, "s1");
      let movedCount = 0;
      for (const { tunnel } of created) {
        const placement = replica.tunnel(tunnel.id)?.placement;
        expect(placement?.shard).toBe("s1");
        const hasMoved = tunnel.placement.shard === "s2";
        if (hasMoved) movedCount += 1;
        expect((placement?.revision ?? 0) > tunnel.placement.revision).toBe(hasMoved);
      }
      expect(movedCount).toBeGreaterThan(0);
      expect((await directory.createTunnel({})).tunnel.placement.shard).toBe("s1");
    });

    test("a revision grows though the wall clock falls", async () => {
      const created = await Promise.all(Array.from({ length: 20 }, () => directory.createTunnel({})));
      opened.jumpWallClock?.(-3_600_000);
      await registerShards(directory, "s3");
      for (const { tunnel } of created) {
        expect(replica.tunnel(tunnel.id)?.placement.revision).toBeGreaterThan(tunnel.placement.revision);
      }
    });

    test("without a live shard a tunnel is not created", async () => {
      await registerShards(directory);
      await expectCode(directory.createTunnel({}), "directory_unavailable");
      expect((await directory.listTunnels({ limit: 1 })).items).toEqual([]);
    });

    test("many mutations at once all commit, a refused one among them alone is refused", async () => {
      const creations = Array.from({ length: 300 }, () => directory.createTunnel({}));
      const refused = directory.deleteTunnel(UNKNOWN_TUNNEL);
      await expectCode(refused, "tunnel_not_found");
      const ids = (await Promise.all(creations)).map(({ tunnel }) => tunnel.id);
      expect(ids.every((id) => replica.tunnel(id) !== undefined)).toBe(true);
    });

    test("there is one sealing key of 32 bytes, and the residency is global", () => {
      expect(replica.sealingKeys().map((key) => [key.secret.length, key.state])).toEqual([[32, "sealing"]]);
      expect(replica.residency()).toBe("global");
    });
  });
}
