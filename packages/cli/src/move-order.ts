// What the arguments of `moor move` ask for together.

import { ConfigError } from "@moor/runtime";

/** One of the four things `moor move` does. */
export type MoveOrder =
  | { readonly kind: "one"; readonly tenant: string; readonly to: string }
  | { readonly kind: "many"; readonly from: string; readonly to: string | undefined; readonly rate: number }
  | { readonly kind: "resume"; readonly job: string }
  | { readonly kind: "abort"; readonly job: string };

/** Options that say what to do. */
export interface MoveOrderOptions {
  readonly to?: string;
  readonly from?: string;
  readonly spread?: boolean;
  readonly rate?: number;
  readonly resume?: string;
  readonly abort?: string;
}

/** What the arguments mean together. Throws ConfigError when they mean nothing, or two things. */
export function readMoveOrder(tenant: string | undefined, options: MoveOrderOptions): MoveOrder {
  const { from, to, spread, rate, resume: resumed, abort: aborted } = options;
  const subjects = { TENANT: tenant, "--from": from, "--resume": resumed, "--abort": aborted };
  const given = Object.entries(subjects).filter(([, value]) => value !== undefined);
  if (given.length !== 1) {
    const got = given.length === 0 ? "none" : given.map(([name]) => name).join(" and ");
    throw new ConfigError("moor move", got, "one of TENANT, --from, --resume and --abort");
  }
  if (resumed !== undefined) return { kind: "resume", job: resumed };
  if (aborted !== undefined) return { kind: "abort", job: aborted };
  if (tenant !== undefined) {
    if (to === undefined) throw new ConfigError("--to", "nothing", "the shard to move to");
    if (spread === true) throw new ConfigError("--spread", "one tunnel", "--from SHARD");
    return { kind: "one", tenant, to };
  }
  if ((to === undefined) !== (spread === true)) {
    throw new ConfigError(
      "moor move --from",
      to === undefined ? "no target" : "both",
      "either --to or --spread",
    );
  }
  if (rate === undefined) throw new ConfigError("--rate", "nothing", "moves a second, e.g. 50/s");
  return { kind: "many", from: from ?? "", to, rate };
}
