// Whether a poll that came to the wrong place is told so, or served through its owner.
//
// Spec: R3, R4, R24.
// I1  Only a poll that declared the capability itself is corrected, and never after a command was taken for it.
// I2  A poll whose token says at least as new a revision is served: we may be the one who is behind.
// I3  A tokenless poll is corrected at most three times (per tunnel and instance) before it is served.

import {
  TOKENLESS_CORRECTIONS_MAX,
  TOKENLESS_CORRECTIONS_MEMORY_MS,
  type InstanceId,
  type TunnelId,
} from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import type { KnownPlacement } from "../peer/peer-link.ts";

/** Tunnels and instances counted at once; the oldest is forgotten first. Count. Spec R24: bounded memory. */
const COUNTED_MAX = 10_000;

/** What matters of a poll. */
export interface CorrectablePoll {
  readonly tunnel: TunnelId;
  readonly instance: InstanceId;
  /** Whether this very request declared `wrong-cluster-v1`. Spec R3. */
  readonly isCapable: boolean;
  /** Where its token pointed, if it had one that opened. */
  readonly presented: KnownPlacement | undefined;
}

export interface CorrectionPolicy {
  /** Whether to correct `poll` to `placement`; counts it if so. */
  decide(poll: CorrectablePoll, placement: KnownPlacement): "correct" | "serve";
  /** The poll was served: the count begins anew. */
  served(poll: CorrectablePoll): void;
}

export function createCorrectionPolicy(
  runtime: Pick<Runtime, "monotonicMs">,
  isCorrecting: () => boolean,
): CorrectionPolicy {
  const counts = new Map<string, { count: number; atMs: number }>();
  const keyOf = (poll: CorrectablePoll) => `${poll.tunnel} ${poll.instance}`;
  return {
    decide(poll, placement) {
      if (!isCorrecting() || !poll.isCapable) return "serve";
      if (poll.presented !== undefined) {
        return poll.presented.revision >= placement.revision ? "serve" : "correct";
      }
      const key = keyOf(poll);
      const nowMs = runtime.monotonicMs();
      const known = counts.get(key);
      const count =
        known === undefined || nowMs - known.atMs > TOKENLESS_CORRECTIONS_MEMORY_MS ? 0 : known.count;
      if (count >= TOKENLESS_CORRECTIONS_MAX) return "serve";
      counts.delete(key);
      counts.set(key, { count: count + 1, atMs: nowMs });
      if (counts.size > COUNTED_MAX) dropOldest(counts);
      return "correct";
    },
    served: (poll) => void counts.delete(keyOf(poll)),
  };
}

function dropOldest(counts: Map<string, unknown>): void {
  for (const oldest of counts.keys()) {
    counts.delete(oldest);
    return;
  }
}
