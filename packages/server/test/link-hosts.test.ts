// Where a dialled Host leads, and where a client belongs by what it dialled.

import { verifies } from "@moor/testkit";
import { describe, expect, test } from "vitest";
import type { ShardId, ShardRecord } from "../src/directory/directory.ts";
import { LinkHosts } from "../src/entry/link/link-hosts.ts";
import { EntryLinks } from "./support/entry-links.ts";

function hosts(states: Readonly<Record<string, ShardRecord["state"]>>, base = "moor.example"): LinkHosts {
  const shards = Object.entries(states).map(([id, state]) => ({
    id: id as ShardId,
    node: "n1",
    publicHost: `${id}.moor.example`,
    state,
    leaseCounter: 0,
  }));
  return new LinkHosts({ base, shards: () => shards, defaultShard: () => "s1" as ShardId });
}

describe("a Host header", () => {
  const known = hosts({ s1: "live", s2: "live", s3: "draining", s4: "down" });
  const cases: readonly [string, string | undefined][] = [
    ["moor.example", "s1"],
    ["moor.example:443", "s1"],
    ["MOOR.example", "s1"],
    ["s1.moor.example", "s1"],
    ["s2.moor.example:8443", "s2"],
    ["S2.Moor.Example", "s2"],
    ["s3.moor.example", "s1"], // known, not live: as the base host
    ["s4.moor.example", "s1"],
    ["s5.moor.example", undefined],
    ["moor.example.", undefined],
    ["s2.moor.example.evil.example", undefined],
    ["evil.example", undefined],
    ["x.s2.moor.example", undefined],
    ["", undefined],
    [":443", undefined],
    ["moor.example:port", undefined],
    ["moor.example, s2.moor.example", undefined],
    ["user@moor.example", undefined],
    ["moor.exämple", undefined],
    ["s2.moor.example/x", undefined],
  ];
  for (const [header, shard] of cases) {
    verifies("L21", `${JSON.stringify(header)} leads to ${shard ?? "nothing"}`, () => {
      const found = known.find(header, false);
      expect(found?.kind === "shard" ? found.shard : undefined).toBe(shard);
    });
  }

  test("a name of this machine is served on a loopback listener only, and never redirected", () => {
    for (const name of ["localhost", "127.0.0.1", "127.1.2.3:80", "[::1]:8080", "LOCALHOST"]) {
      expect(known.find(name, true)?.kind).toBe("local");
      expect(known.find(name, false)).toBeUndefined();
    }
    expect(known.find("s9.localhost", true)).toBeUndefined();
    expect(known.find("192.0.2.1", true)).toBeUndefined();
    expect(known.find("[::1]:8080", true)?.host).toBe("[::1]");
  });

  test("an address can be the base host", () => {
    expect(hosts({ s1: "live" }, "192.0.2.1").find("192.0.2.1:8080", false)).toMatchObject({ shard: "s1" });
  });

  test("the base host is the link host of the default shard, others have their own", () => {
    const [s1, s2] = ["s1", "s2"].map((id) => ({ id: id as ShardId, publicHost: `${id}.moor.example` }));
    expect(known.hostOf(s1 as ShardRecord)).toBe("moor.example");
    expect(known.hostOf(s2 as ShardRecord)).toBe("s2.moor.example");
  });
});

describe("a home and a dialled host", () => {
  const base = "moor.localhost";
  // [home's shard, its state, host dialled, follows, how it ends]
  const cases: readonly [string, ShardRecord["state"], string, boolean, string][] = [
    ["s1", "live", base, true, "served"],
    ["s1", "live", `s1.${base}`, true, "served"],
    ["s2", "live", `s2.${base}`, true, "served"],
    ["s2", "live", base, true, `4421 s2.${base}`],
    ["s2", "live", `s1.${base}`, true, `4421 s2.${base}`],
    ["s1", "live", `s2.${base}`, true, `4421 ${base}`],
    ["s2", "live", "127.0.0.1", true, "served"],
    ["s2", "live", "localhost", true, "served"],
    ["s2", "live", base, false, "served"],
    ["s1", "live", `s2.${base}`, false, "served"],
    ["s2", "draining", base, true, "4503 5000"],
    ["s2", "down", base, true, "4503 5000"],
    ["s2", "draining", `s2.${base}`, true, "4503 5000"], // leads where the base host does
    ["s2", "draining", base, false, "served"],
    ["s1", "draining", base, true, "served"],
    ["s1", "draining", `s2.${base}`, true, "4503 5000"],
  ];
  for (const [shard, state, host, isFollowing, end] of cases) {
    const who = isFollowing ? "a client that follows" : "a client that does not follow";
    verifies("L21", `${who}, at ${host}, of a home on ${shard} (${state}): ${end}`, () => {
      const entry = new EntryLinks();
      entry.addHome("h1", shard);
      entry.setState(shard, state);
      const client = entry.box("h1", { host, caps: isFollowing ? ["x", "shard"] : ["shards"] });
      expect(client.isOnline ? "served" : client.end).toBe(end);
      if (client.isOnline) expect(entry.shard(shard).heard).toEqual(["register box h1 new"]);
    });
  }

  verifies(
    ["L1", "L6", "L21"],
    "4421 comes after hello and before anything else, an app's after its token was verified",
    () => {
      const entry = new EntryLinks();
      entry.addHome("h1", "s2");
      const box = entry.hail("h1");
      expect(box.kinds).toEqual([]);
      expect(box.end).toBe(`4421 s2.${base}`);
      const app = entry.app(entry.addToken("h1"));
      expect([app.kinds, app.end]).toEqual([[], `4421 s2.${base}`]);
      const unknown = entry.app("h1.nobody");
      expect(unknown.end).toBe("4401");
      expect(entry.outcomes).toEqual(["redirected", "redirected", "unauthorized"]);
    },
  );

  verifies("L21", "the host a 4421 names passes L4, and is never the one dialled", async () => {
    const { shardHostOk } = await import("@moor/protocol");
    const entry = new EntryLinks({ shards: ["s1", "s2", "s3"] });
    for (const shard of ["s1", "s2", "s3"]) entry.addHome(shard, shard);
    for (const home of ["s1", "s2", "s3"]) {
      for (const host of [base, `s1.${base}`, `s2.${base}`, `s3.${base}`]) {
        const { end } = entry.hail(home, { host });
        if (!end.startsWith("4421")) continue;
        const named = end.slice(5);
        expect(shardHostOk(named, base)).toBe(true);
        expect(named).not.toBe(host);
      }
    }
  });
});
