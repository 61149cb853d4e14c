// What a client makes of a 4421.
// Spec: L4, L6, L11, L17.   Pure.
//
// I1  Nothing is followed that fails L4, names the host just dialled, or is the second in a row before hello_ok.
// I2  The named host is never part of a warning or trouble.

import { dropRecord, keptFor, withoutKept } from "./kept-host.ts";
import { failDial, loseLink, settle } from "./link-endings.ts";
import type { RedirectedEvent } from "./link-event.ts";
import { CLOSE_CODE } from "./link-names.ts";
import type { FollowerIn, LinkFollower } from "./link-state.ts";
import { backOff, dialNext, type LinkStep } from "./link-waits.ts";
import { shardHostOk } from "./shard-host.ts";

/** A 4421 before hello_ok. Spec L11. */
export function redirectDial(state: FollowerIn<"dialing">, event: RedirectedEvent): LinkStep {
  if (!state.isFollowing) {
    return failDial(state, event, "redirect-unfollowed", [{ kind: "warn", code: "redirect-unfollowed" }]);
  }
  // (1) A second in a row, whatever it names.
  if (state.hops >= 1) {
    const begin = { ...event, trouble: "redirect-repeated" } as const;
    return backOff(withoutKept(state), begin, dropRecord(state, "redirect-repeated"));
  }
  // (2) Bad, or the host just dialled.
  if (!mayFollow(state, event.reason)) {
    return failDial(state, event, "redirect-refused", [{ kind: "warn", code: "redirect-refused" }]);
  }
  // (3)
  return follow(state, event);
}

/** A 4421 of a live link. Spec L11. */
export function redirectLink(state: FollowerIn<"online">, event: RedirectedEvent): LinkStep {
  const lost = { ...event, kind: "lost", by: "peer", closeCode: CLOSE_CODE.wrongShard } as const;
  if (!state.isFollowing) return loseLink(state, lost, "redirect-unfollowed");
  if (!mayFollow(state, event.reason)) {
    const { state: next, effects } = loseLink(state, lost, "redirect-refused");
    return { state: next, effects: [{ kind: "warn", code: "redirect-refused" }, ...effects] };
  }
  return follow(settle(state, event.atMs), event);
}

function mayFollow(state: FollowerIn<"dialing" | "online">, host: string): boolean {
  return shardHostOk(host, state.base) && host !== state.phase.host;
}

/** L11 (3), L17. */
function follow(state: LinkFollower, event: RedirectedEvent): LinkStep {
  const led = { ...state, kept: keptFor(state, event.reason), failures: undefined, hops: 1 };
  if (led.hasCredit) return dialNext({ ...led, hasCredit: false });
  return backOff(led, { ...event, trouble: "redirected" }, []);
}
