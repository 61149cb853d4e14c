// The parts of an operator listener that a test of other routes does not care about.

import { ProtocolError } from "@moor/protocol";
import type { DrainDesk } from "../../src/drains/drain-desk.ts";
import type { Mover, TimelineSource } from "../../src/moves/mover.ts";
import type { OperatorApiOptions } from "../../src/operator/operator-route.ts";

/** A mover that moves nobody, drains of nobody, an empty timeline, homes nobody answers for, leases of unknown age. */
export function idleParts(): Pick<
  OperatorApiOptions,
  "mover" | "drains" | "timeline" | "homeStatus" | "leases"
> {
  const refused = { kind: "refused", error: new ProtocolError("conflict") } as const;
  const mover: Mover = { move: async () => refused, moveBatch: async () => refused };
  const timeline: TimelineSource = { timeline: async () => ({ events: [], unreached: [] }) };
  const drains: DrainDesk = {
    order: () => Promise.reject(new ProtocolError("conflict")),
    report: () => Promise.reject(new ProtocolError("not_found")),
  };
  const homeStatus = async () => undefined;
  return { mover, drains, timeline, homeStatus, leases: { ageMs: () => undefined, isLate: () => false } };
}
