// Moves tenants: commits at the directory, tells the new owner and waits for its word, then tells everybody else.
//
// Spec: R22; design "Moves". The feed brings the same news later: a push that is lost costs time, not truth.
// I1  The move id is minted before the commit: after a lost COMMIT the directory is asked whether it was made.
// I2  The new owner hears of it before the old one lets go, so that what is handed over finds it ready.

import { isProtocolError, type ProtocolError } from "@moor/protocol";
import { sleep, type Logger, type Runtime } from "@moor/runtime";
import type { Directory } from "../directory/directory.ts";
import type { MadeMove } from "../directory/records.ts";
import type { TenantId } from "../directory/tenant-id.ts";
import type { RawHead } from "../peer/peer-messages.ts";
import type { Reply } from "../peer/peer-requests.ts";
import type { Topology } from "../peer/topology.ts";
import { MOVE_ACK_WAIT_MS } from "../server-limits.ts";
import type { MoveBatchOutcome, MoveBatchRequest, MoveOutcome, MoveRequest, Mover } from "./mover.ts";
import { encodePlacements, type PlacementNews } from "./placement-message.ts";

/** How often the directory is asked whether a move of unknown outcome was made. Count. */
const READ_BACK_MAX = 5;

/** Between two of those. Milliseconds. */
const READ_BACK_INTERVAL_MS = 500;

export interface MoverOptions {
  readonly directory: Directory;
  readonly topology: Topology;
  readonly selfNode: string;
  /** Takes news in at this node. */
  readonly apply: (news: PlacementNews) => void;
  readonly ask: (nodeId: string, head: RawHead, waitMs: number) => Promise<Reply>;
  readonly broadcast: (head: RawHead) => void;
  readonly mintMoveId: () => string;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** A mover on this node's directory and links. */
export function createMover(options: MoverOptions): Mover {
  return {
    move: (request) => move(options, request),
    moveBatch: (request) => moveBatch(options, request),
  };
}

async function move(options: MoverOptions, request: MoveRequest): Promise<MoveOutcome> {
  const { directory, logger } = options;
  const moveId = options.mintMoveId();
  const order = { moveId, ...request };
  const end = await commit(options, () => directory.moveTenant(order));
  if (end.kind === "refused") return end;
  if (end.kind === "unknown") return { kind: "unknown-outcome", moveId };
  const { made } = end;
  const isAcked = await announce(options, [made]);
  const { tenant, from, to, placement, actor } = made;
  logger.debug("move-announced", { tenant, from, to, revision: placement.revision, actor, moveId, isAcked });
  return { kind: "moved", move: made, isAcked };
}

async function moveBatch(options: MoverOptions, request: MoveBatchRequest): Promise<MoveBatchOutcome> {
  const { directory, logger } = options;
  const end = await commit(options, () => directory.moveTenants(request));
  if (end.kind === "refused") return end;
  if (end.kind === "unknown") return { kind: "unknown-outcome" };
  const { moves, blocked } = end.made;
  if (moves.length > 0) await announce(options, moves);
  logger.debug("moves-announced", { count: moves.length, job: request.job, actor: request.actor });
  return { kind: "moved", moves, blocked };
}

type CommitEnd<Made> =
  | { readonly kind: "made"; readonly made: Made }
  | { readonly kind: "refused"; readonly error: ProtocolError }
  | { readonly kind: "unknown" };

/**
 * Gives an order. A failure that may have been made is asked again: orders are idempotent by move id, so the second
 * answer tells what the first one came to. One that certainly changed nothing is the answer.
 */
async function commit<Made>(options: MoverOptions, order: () => Promise<Made>): Promise<CommitEnd<Made>> {
  try {
    return { kind: "made", made: await order() };
  } catch (error) {
    if (!isProtocolError(error)) throw error;
    if (!mayBeMade(error)) return { kind: "refused", error };
  }
  for (let attempt = 0; attempt < READ_BACK_MAX; attempt += 1) {
    await sleep(options.runtime, READ_BACK_INTERVAL_MS);
    try {
      return { kind: "made", made: await order() };
    } catch (later) {
      if (!isProtocolError(later)) throw later;
      // That this attempt changed nothing says nothing of the first one.
      if (later.code !== "directory_unavailable") return { kind: "refused", error: later };
    }
  }
  return { kind: "unknown" };
}

function mayBeMade(error: ProtocolError): boolean {
  return error.code === "directory_unavailable" && error.data?.["outcome"] !== undefined;
}

/** Tells the new owners, waits for them, then tells this node and all others. Whether all owners said that they know. */
async function announce(options: MoverOptions, moves: readonly MadeMove[]): Promise<boolean> {
  const news = moves.map(({ tenant, placement }) => ({ tenant: tenant as TenantId, placement }));
  const acks = [...byOwnerNode(options, moves)].map(async ([node, items]) => {
    if (node === options.selfNode) {
      for (const item of items) options.apply(item);
      return true;
    }
    return (await options.ask(node, encodePlacements(items), MOVE_ACK_WAIT_MS)) !== undefined;
  });
  const isAcked = (await Promise.all(acks)).every((ack) => ack);
  for (const item of news) options.apply(item);
  options.broadcast(encodePlacements(news));
  return isAcked;
}

/** News by the node that runs the new owner; owners whose node is not known are told by the feed. */
function byOwnerNode(
  options: MoverOptions,
  moves: readonly MadeMove[],
): ReadonlyMap<string, readonly PlacementNews[]> {
  const byNode = new Map<string, PlacementNews[]>();
  for (const { tenant, placement } of moves) {
    const node = options.topology.nodeOf(placement.shard);
    if (node === undefined) continue;
    const items = byNode.get(node) ?? [];
    items.push({ tenant: tenant as TenantId, placement });
    byNode.set(node, items);
  }
  return byNode;
}
