// Moves and the jobs that make many of them, as the directory offers them.
//
// Spec: R22, L22. Design: "Moves".

import { ProtocolError } from "@moor/protocol";
import { randomHex, type Runtime } from "@moor/runtime";
import { textAt } from "../columns.ts";
import type { Directory, Job, JobInput, MoveBlocker, MovedTenants } from "../directory.ts";
import type { MoveTenants } from "../mutations/move-mutations.ts";
import { assertJobInput, assertMoveOrder, assertOrder, MOVES_PER_ORDER_MAX } from "../order-input.ts";
import { pageByNumber } from "../page.ts";
import { jobFromRow, moveFromRow } from "../rows.ts";
import { query, READ, type Row } from "../statements.ts";
import { assertText } from "../tunnel-input.ts";
import type { DirectoryParts } from "./directory-parts.ts";

type MoveOperations = Pick<Directory, "moveTenant" | "moveTenants" | "findMove" | "listMoves">;
type JobOperations = Pick<Directory, "createJob" | "updateJob" | "getJob" | "listJobs" | "abortJob">;

/** A move's id, for who asks for it: kept, it finds the move again after a lost answer. */
export function mintMoveId(runtime: Pick<Runtime, "randomBytes">): string {
  return `move_${randomHex(runtime, 16)}`;
}

/** Operations on moves. */
export function moveOperations(parts: DirectoryParts): MoveOperations {
  const move = async (mutation: Omit<MoveTenants, "kind">) =>
    movedFromRows(await parts.change({ kind: "move-tenants", ...mutation }));
  return {
    async moveTenant(order) {
      assertOrder(order);
      assertMoveOrder(order);
      const { moveId, tenant, to, from = null, actor, reason = "", job = null, isForced = false } = order;
      const orders = [{ moveId, tenant, to, from }];
      const fields = { actor, reason, job, isForced };
      const { moves } = await move({ moves: orders, ...fields, leader: null, mode: "one" });
      if (moves[0] === undefined) throw new ProtocolError("tunnel_not_found");
      return moves[0];
    },
    async moveTenants(order) {
      assertOrder(order);
      if (order.moves.length > MOVES_PER_ORDER_MAX) {
        const message = `at most ${MOVES_PER_ORDER_MAX} tenants are moved at once`;
        throw new ProtocolError("invalid_request", { param: "moves", message });
      }
      for (const each of order.moves) assertMoveOrder(each);
      const moves = order.moves.map(({ moveId, tenant, to, from = null }) => ({ moveId, tenant, to, from }));
      const { actor, reason = "", job, isForced = false } = order;
      return move({ moves, actor, reason, job, isForced, leader: parts.leaderClaim(), mode: "many" });
    },
    async findMove(moveId) {
      const [row] = await parts.store.read(query(READ.move, [moveId]));
      return row === undefined ? undefined : moveFromRow(row);
    },
    listMoves: (page) =>
      pageByNumber(page, "revision", moveFromRow, (before, limit) =>
        parts.store.read(
          page.tenant === undefined
            ? query(READ.movesBefore, [before, limit])
            : query(READ.tenantMovesBefore, [before, limit, page.tenant]),
        ),
      ),
  };
}

/** Operations on jobs. */
export function jobOperations(parts: DirectoryParts): JobOperations {
  return {
    async createJob(input: JobInput) {
      assertJobInput(input);
      const { selector, ratePerS, actor, reason = "", isForced = false } = input;
      const id = `job_${randomHex(parts.runtime, 12)}`;
      const fields = { id, ...selector, ratePerS: String(ratePerS), isForced, actor, reason };
      return onlyJob(await parts.change({ kind: "create-job", ...fields }));
    },
    async updateJob({ id, moved = null, blocked = null, cursor = null, state = null, error = null }) {
      if (error !== null) assertText("error", error, 0, 1_024);
      const leader = parts.leaderClaim();
      const progress = { id, moved, blocked, cursor, state, error };
      return onlyJob(await parts.change({ kind: "update-job", ...progress, leader }));
    },
    async getJob(id) {
      return onlyJob(await parts.store.read(query(READ.job, [id])));
    },
    listJobs: (page) =>
      pageByNumber(page, "seq", jobFromRow, (before, limit) =>
        parts.store.read(
          page.state === undefined
            ? query(READ.jobsBefore, [before, limit])
            : query(READ.stateJobsBefore, [before, limit, page.state]),
        ),
      ),
    async abortJob(id, order) {
      assertOrder(order);
      const note = `aborted by ${order.actor}${order.reason ? `: ${order.reason}` : ""}`;
      return onlyJob(await parts.change({ kind: "abort-job", id, note }));
    },
  };
}

function movedFromRows(rows: readonly Row[]): MovedTenants {
  const kept = rows.filter((row) => "blocked" in row);
  return {
    moves: rows.filter((row) => !("blocked" in row)).map(moveFromRow),
    blocked: kept.map((row) => ({
      tenant: textAt(row, "blocked"),
      blockers: JSON.parse(textAt(row, "blockers")) as readonly MoveBlocker[],
    })),
  };
}

function onlyJob(rows: readonly Row[]): Job {
  if (rows[0] === undefined) throw new ProtocolError("job_not_found");
  return jobFromRow(rows[0]);
}
