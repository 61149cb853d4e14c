// What a drain sees of an entry's links, and how it closes them.
//
// Spec: L24; the invariants of link-drain-port.ts.

import type { Runtime } from "@moor/runtime";
import type { LinkDrainPort, LinkedClient } from "../../drains/link-drain-port.ts";
import type { LinkSession } from "./link-session.ts";

export interface LinkDrainOptions {
  readonly sessions: ReadonlyMap<unknown, LinkSession>;
  readonly refuseDials: () => void;
  readonly runtime: Pick<Runtime, "monotonicMs">;
}

/** The drain's port to these sessions. */
export function linkDrain({ sessions, refuseDials, runtime }: LinkDrainOptions): LinkDrainPort {
  return {
    links: () => sessions.size,
    clients: () => clientsOf(sessions),
    refuseDials,
    closeSome: (countMax, code, reason) => {
      let count = 0;
      for (const session of sessions.values()) {
        if (count >= countMax) break;
        if (session.isClosing) continue;
        session.close(code, reason);
        count += 1;
      }
      return count;
    },
    destroyLate: (ageMs) => {
      const nowMs = runtime.monotonicMs();
      const late = [...sessions.values()].filter(
        ({ closingSinceMs }) => closingSinceMs !== undefined && nowMs - closingSinceMs >= ageMs,
      );
      for (const session of late) session.destroy();
      return late.length;
    },
  };
}

function* clientsOf(sessions: ReadonlyMap<unknown, LinkSession>): Iterable<LinkedClient> {
  for (const { link, role } of sessions.values()) {
    if (link === undefined) continue;
    const { home, app } = link;
    yield app === undefined ? { home, role } : { home, role, app };
  }
}
