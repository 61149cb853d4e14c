// Moving tenants on somebody's order.
//
// Spec: R22, L22. Design: "Moves".
// I1  A move id is made once: asked again, the move that was made is given.
// I2  A step of a job is made only while that job runs and its asker leads.

import { integerAt, textAt, valuesOf } from "../columns.ts";
import type { MoveBlocker } from "../home-records.ts";
import type { Ledger } from "../ledger.ts";
import { insertRows, queriesIn } from "../multi-row.ts";
import {
  all,
  done,
  refused,
  type MutationFunction,
  type MutationOutcome,
  type MutationSteps,
  type Steps,
} from "../mutation-steps.ts";
import { MOVE_COLUMNS, MOVES_SELECT, query, READ, type Row } from "../statements.ts";
import { WRITE } from "../write-statements.ts";
import { moveBlocked, moveBlockers } from "./move-gate.ts";
import { placeTenants, TOKEN_FORMAT, type Assigned } from "./place-tenants.ts";

/** One start of a node, as leader. */
export interface LeaderClaim {
  readonly node: string;
  readonly incarnation: string;
}

/** Tenants to be moved. */
export interface MoveTenants {
  readonly kind: "move-tenants";
  readonly moves: readonly {
    readonly moveId: string;
    readonly tenant: string;
    readonly to: string;
    /** Null = from wherever it is. */
    readonly from: string | null;
  }[];
  readonly actor: string;
  readonly reason: string;
  readonly job: string | null;
  /** Who leads, where the moves are a step of a job. */
  readonly leader: LeaderClaim | null;
  /** `one`: a tenant that cannot be moved is refused. `many`: it is left out, and named where L22 is why. */
  readonly mode: "one" | "many";
  /** Moves homes that L22 would keep, too. */
  readonly isForced: boolean;
}

type Order = MoveTenants["moves"][number];

/**
 * Gives the moves that were made, earlier ones asked for again included, as rows of READ.move; behind them a row for
 * each tenant that L22 kept: `blocked` is the tenant, `blockers` a JSON text of who blocks it.
 */
export const moveTenants: MutationFunction<MoveTenants> = function* (input, ledger): MutationSteps {
  if (input.leader !== null) {
    const hindrance = yield* jobHindrance(input.job ?? "", input.leader, ledger);
    if (hindrance !== undefined) return hindrance;
  }
  const ids = input.moves.map((move) => move.moveId);
  const made = yield* all(queriesIn(`${MOVES_SELECT} where id`, ids));
  const madeIds = new Set(made.map((row) => row["id"]));
  const open = input.moves.filter((move) => !madeIds.has(move.moveId));

  const deadTarget = yield* targetRefusal(open);
  if (deadTarget !== undefined) return deadTarget;
  const tenants = open.map((move) => move.tenant);
  const placed = yield* all(queriesIn("select tenant, shard from placements where tenant", tenants));
  const shards = new Map(placed.map((row) => [textAt(row, "tenant"), textAt(row, "shard")]));
  const moving = new Map<string, Order>();
  for (const move of open) {
    const obstacle = obstacleOf(move, shards.get(move.tenant));
    if (obstacle !== undefined && input.mode === "one") return obstacle;
    if (obstacle === undefined) moving.set(move.tenant, move);
  }
  const blocked = input.isForced ? new Map() : yield* blockedOf([...moving.values()], ledger);
  for (const [tenant, blockers] of blocked) {
    if (input.mode === "one") return moveBlocked(tenant, blockers);
    moving.delete(tenant);
  }
  const assigned = yield* placeTenants(
    [...moving.values()].map((move) => ({ tenant: move.tenant, shard: move.to, reason: "moved" })),
    ledger,
  );
  const rows = assigned.map((each) => moveRow(input, moving.get(each.tenant), shards, each, ledger.wallMs));
  yield* all(
    insertRows(
      "moves",
      MOVE_COLUMNS,
      rows.map((row) => valuesOf(row, MOVE_COLUMNS)),
    ),
  );
  for (const row of rows) ledger.change("move", textAt(row, "id"));
  const kept = [...blocked].map(([tenant, blockers]) => ({
    blocked: tenant,
    blockers: JSON.stringify(blockers),
  }));
  return done([...made, ...rows, ...kept]);
};

/** Why a step of a job may not be made. */
export function* jobHindrance(
  job: string,
  leader: LeaderClaim,
  ledger: Ledger,
): Steps<MutationOutcome | undefined> {
  const leading = yield query(WRITE.isLeading, [leader.node, leader.incarnation, ledger.wallMs]);
  if (leading.length === 0) return refused("conflict", "this node does not lead");
  const [found] = yield query(READ.job, [job]);
  if (found === undefined) return refused("job_not_found", "no such job");
  return found["state"] === "running" ? undefined : refused("conflict", "the job does not run any more");
}

function* targetRefusal(orders: readonly Order[]): Steps<MutationOutcome | undefined> {
  for (const shard of new Set(orders.map((order) => order.to))) {
    const [found] = yield query(WRITE.shard, [shard]);
    if (found === undefined) return refused("shard_not_found", `there is no shard ${shard}`);
    if (found["state"] !== "live") return refused("conflict", `shard ${shard} is not live`);
  }
  return undefined;
}

function obstacleOf(order: Order, shard: string | undefined): MutationOutcome | undefined {
  if (shard === undefined) {
    const isTunnel = order.tenant.startsWith("tunnel_");
    return isTunnel
      ? refused("tunnel_not_found", "no such tunnel")
      : refused("home_not_found", "no such home");
  }
  if (shard === order.to) return refused("conflict", `the tenant is on shard ${shard} already`);
  if (order.from !== null && order.from !== shard) {
    return refused("conflict", `the tenant is on shard ${shard}, not on ${order.from}`);
  }
  return undefined;
}

/** Which of these may not be moved, and who keeps each: homes that would leave the default shard. Spec L22. */
function* blockedOf(
  orders: readonly Order[],
  ledger: Ledger,
): Steps<ReadonlyMap<string, readonly MoveBlocker[]>> {
  const [row] = yield query(WRITE.defaultShard, []);
  const leaving = orders.filter(({ to }) => to !== row?.["id"]).map(({ tenant }) => tenant);
  return yield* moveBlockers(leaving, ledger);
}

function moveRow(
  input: MoveTenants,
  order: Order | undefined,
  shards: ReadonlyMap<string, string>,
  assigned: Assigned,
  atMs: number,
): Row {
  return {
    id: order?.moveId ?? "",
    tenant: assigned.tenant,
    from_shard: shards.get(assigned.tenant) ?? null,
    to_shard: assigned.shard,
    revision: assigned.revision,
    token_key: assigned.tokenKey,
    token_format: TOKEN_FORMAT,
    at_ms: atMs,
    actor: input.actor,
    reason: input.reason,
    job: input.job,
  };
}

/** How many tenants a shard has. */
export function* countTenants(shard: string): Steps<number> {
  return integerAt((yield query(WRITE.countTenantsOfShard, [shard]))[0], "total");
}
