// Orders one move and does not leave before it is known whether it was made.
//
// Design: "Moves".   I1  A move whose answer was lost is looked up by its id; only if nobody can be asked for
// SETTLE_MS_MAX is the reader told that it is not known, and how to ask.

import { sleep, type Runtime } from "@moor/runtime";
import { RefusedError, UnreachableError } from "./exit-code.ts";
import type { FleetClient, MoveJson } from "./fleet-client.ts";

/** How long a move of unknown outcome is asked for. Milliseconds. */
const SETTLE_MS_MAX = 60_000;
/** How often. Milliseconds. */
const SETTLE_INTERVAL_MS = 1_000;
/** Answers "no such move" in a row that count: a commit that was on its way has arrived by the second. */
const ABSENT_ANSWERS = 2;

/** What settling needs. */
export interface MoveSettlement {
  readonly client: Pick<FleetClient, "move" | "showMove">;
  readonly runtime: Runtime;
  /** Tells the reader why it takes longer. */
  readonly say: (text: string) => void;
}

/** The move that was made. Rejects with RefusedError when it was not, or when that stays unknown. */
export async function settleMove(
  order: Parameters<FleetClient["move"]>[0],
  { client, runtime, say }: MoveSettlement,
): Promise<MoveJson> {
  try {
    return await client.move(order);
  } catch (error) {
    const id = error instanceof RefusedError ? error.data["move"] : undefined;
    if (error instanceof UnreachableError) throw lostWith(error, order.tenant);
    if (typeof id !== "string") throw error;
    say(`The directory was lost in the middle; asking whether ${id} was made …`);
    return lookUp(client, id, runtime);
  }
}

async function lookUp(
  client: Pick<FleetClient, "showMove">,
  id: string,
  runtime: Runtime,
): Promise<MoveJson> {
  const untilMs = runtime.monotonicMs() + SETTLE_MS_MAX;
  let absentCount = 0;
  while (runtime.monotonicMs() < untilMs) {
    await sleep(runtime, SETTLE_INTERVAL_MS);
    const found = await find(client, id);
    if (typeof found === "object") return found;
    absentCount = found === "absent" ? absentCount + 1 : 0;
    if (absentCount === ABSENT_ANSWERS) {
      throw new RefusedError(
        "directory_unavailable",
        "the directory was lost before the move: nothing was moved",
      );
    }
  }
  throw new RefusedError(
    "directory_unavailable",
    `whether the move was made is not known yet; ask later: moor moves --id ${id}`,
  );
}

async function find(
  client: Pick<FleetClient, "showMove">,
  id: string,
): Promise<MoveJson | "absent" | "unknown"> {
  try {
    return await client.showMove(id);
  } catch (error) {
    return error instanceof RefusedError && error.code === "not_found" ? "absent" : "unknown";
  }
}

/** The node went away with the answer, if it was ever asked: only the record tells. */
function lostWith(error: UnreachableError, tenant: string): UnreachableError {
  const [what = ""] = error.message.split("\n");
  return new UnreachableError(what, `Whether the move was made: moor moves --tenant ${tenant}`);
}
