// Which clients of another node's drain are linked here now: it asks by their marks, since nobody's name leaves a node.
//
// Spec: L24; docs/protocol/peer-link.md (`drain-seen`).
// I1  The event loop is given back between batches: a node may hold a hundred thousand links.

import { sleep, type Runtime } from "@moor/runtime";
import { markOf } from "./drain-note.ts";
import type { LinkedClient } from "./link-drain-port.ts";

/** Clients whose marks are made in one go. Count: some milliseconds of work. */
const BATCH_CLIENTS = 2_000;

/** The `marks`, made with `salt`, that are of one of `clients`. */
export async function findMarks(
  clients: Iterable<LinkedClient>,
  salt: string,
  marks: readonly string[],
  runtime: Runtime,
): Promise<readonly string[]> {
  const wanted = new Set(marks);
  const found: string[] = [];
  let count = 0;
  for (const client of clients) {
    const mark = markOf(salt, client);
    if (wanted.delete(mark)) found.push(mark);
    count += 1;
    if (count % BATCH_CLIENTS === 0) await sleep(runtime, 0);
  }
  return found;
}
