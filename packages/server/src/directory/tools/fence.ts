// `moor directory fence`: after a restore, a failover that lost writes, or whenever nodes say the directory is regressed.
//
// Spec: R22.
// I1  Afterwards every placement has a revision above every one that was given out before, as far as anybody knows:
//     the directory itself, its clock, the nodes' watermarks, the operator.
// I2  Interrupted, it is begun again: nodes trust the directory only when it is through.

import { ProtocolError } from "@moor/protocol";
import { randomHex, type Runtime } from "@moor/runtime";
import { integerAt, textAt } from "../columns.ts";
import { revisionFloor } from "../placement-choice.ts";
import type { ToolStore } from "./tool-store.ts";

/** What a fence came to. */
export interface FenceReport {
  readonly incarnation: string;
  /** Every revision from here on is higher. */
  readonly above: number;
  /** Tenants placed anew, where they were. */
  readonly restamped: number;
}

/**
 * Fences the directory.
 *
 * @param above highest revision that anybody is known to have seen; 0 when nobody knows
 * @param onProgress called with the tenants placed anew so far
 */
export async function fenceDirectory(
  store: ToolStore,
  runtime: Runtime,
  above: number,
  onProgress: (restamped: number) => void = () => {},
): Promise<FenceReport> {
  if (!Number.isSafeInteger(above) || above < 0) {
    throw new ProtocolError("invalid_request", { param: "above", message: "above is a revision" });
  }
  const floor = Math.max(above, revisionFloor(runtime.wallMs()));
  const upTo = integerAt((await store.change({ kind: "raise-revision", above: floor }))[0], "up_to");
  let restamped = 0;
  for (let after = ""; ;) {
    const rows = await store.change({ kind: "restamp-placements", upTo, after });
    const last = rows.at(-1);
    if (last === undefined) break;
    after = textAt(last, "tenant");
    restamped += rows.length;
    onProgress(restamped);
  }
  const incarnation = randomHex(runtime, 8);
  await store.change({ kind: "set-incarnation", incarnation });
  return { incarnation, above: upTo, restamped };
}
