import { describe, expect, test } from "vitest";
import { ProtocolError, type TunnelId } from "@moor/protocol";
import { createSilentLogger } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import type { Directory, MadeMove, ShardId } from "../src/directory/directory.ts";
import { createMover } from "../src/moves/create-mover.ts";
import type { PlacementNews } from "../src/moves/placement-message.ts";

const TENANT = `tunnel_${"a".repeat(32)}` as TunnelId;
const REQUEST = { tenant: TENANT, to: "s2" as ShardId, actor: "test", reason: "" };
const PLACEMENT = { shard: "s2" as ShardId, revision: 7, tokenKey: "tk_1", tokenFormat: 1 };

function made(moveId: string): MadeMove {
  const { tenant, to, actor, reason } = REQUEST;
  return {
    id: moveId,
    tenant,
    from: "s1" as ShardId,
    to,
    revision: 7,
    atMs: 0,
    actor,
    reason,
    job: null,
    placement: PLACEMENT,
  };
}

const unavailable = (outcome?: string) =>
  new ProtocolError("directory_unavailable", outcome === undefined ? {} : { data: { outcome } });

/** A mover whose directory answers as told, in turn; the last answer repeats. */
function world(
  answers: (ProtocolError | "made")[],
  options: { readonly owner?: string; readonly isSilent?: boolean } = {},
) {
  const runtime = new VirtualRuntime();
  const log: string[] = [];
  const ids = new Set<string>();
  const moveTenant: Directory["moveTenant"] = async (order) => {
    ids.add(order.moveId);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer instanceof ProtocolError) throw answer;
    return made(order.moveId);
  };
  const mover = createMover({
    directory: { moveTenant } as Partial<Directory> as Directory,
    topology: { nodeOf: () => options.owner ?? "b", liveShards: () => [], shardsOf: () => new Set() },
    selfNode: "a",
    apply: (news: PlacementNews) => log.push(`apply ${news.placement.revision}`),
    ask: async (node) => {
      log.push(`ask ${node}`);
      return options.isSilent === true ? undefined : { head: { t: "placements-reply" } };
    },
    broadcast: () => log.push("broadcast"),
    mintMoveId: () => `move_${ids.size}`,
    runtime,
    logger: createSilentLogger(),
  });
  const move = async () => {
    const outcome = mover.move(REQUEST);
    await runtime.advanceAsync(60_000);
    return outcome;
  };
  return { move, log, ids };
}

describe("a move", () => {
  verifies("R22", "the new owner is told and says so before anybody else hears of it", async () => {
    const { move, log } = world(["made"]);
    expect(await move()).toMatchObject({ kind: "moved", isAcked: true });
    expect(log).toEqual(["ask b", "apply 7", "broadcast"]);
  });

  test("an owner that does not say that it knows is left to the feed", async () => {
    const { move, log } = world(["made"], { isSilent: true });
    expect(await move()).toMatchObject({ kind: "moved", isAcked: false });
    expect(log).toContain("broadcast");
  });

  test("a new owner on this very node hears of it first too", async () => {
    const { move, log } = world(["made"], { owner: "a" });
    expect(await move()).toMatchObject({ kind: "moved", isAcked: true });
    expect(log.at(-1)).toBe("broadcast");
  });

  test("a commit without an answer is asked for by its id until the directory tells", async () => {
    for (const outcome of ["unknown", "made"]) {
      const { move, ids } = world([unavailable(outcome), unavailable(), "made"]);
      expect(await move()).toMatchObject({ kind: "moved" });
      expect(ids.size).toBe(1);
    }
  });

  test("what certainly changed nothing is refused at once, with the directory's own error", async () => {
    const conflict = world([new ProtocolError("conflict")]);
    expect(await conflict.move()).toMatchObject({ kind: "refused", error: { code: "conflict" } });
    const away = world([unavailable()]);
    expect(await away.move()).toMatchObject({ kind: "refused", error: { code: "directory_unavailable" } });
    expect(away.log).toEqual([]);
  });

  test("a commit that nobody can be asked about is said to be unknown, with its id", async () => {
    const { move, log } = world([unavailable("unknown"), unavailable()]);
    expect(await move()).toEqual({ kind: "unknown-outcome", moveId: "move_0" });
    expect(log).toEqual([]);
  });
});
