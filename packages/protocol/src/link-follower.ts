// Which host a box or app dials, when, and what it keeps: the pure half of a client that follows its home's shard.
// Spec: L9–L18, L23, L28.   Pure: no clock, no random source, no I/O; a state is never changed, a step returns the next one.
//
// I1  Every host dialled is the base or passes shardHostOk; K is never the base itself (L4, L12, L13).
// I2  At most one instant redial for each wait that ran to its end or link that lived 10 s (L17).
// I3  A host becomes K in the record only by a verified hello_ok (L10, L12).
// I4  A report that does not fit the phase is late news of a dial or wait given up, and changes nothing.
//
// Where L9–L18 leave a choice, it is made so:
// - hops ≥ 1 is judged before everything else of a 4421, and so is a client that does not follow: for that one a 4421 is a
//   failed dial, or a lost link, at the same host, and a record's host does not count.
// - A 4421 that is refused (L11 (2)) at K is a failed dial like others: it counts for L14, and may be what forgets K.
// - What a redirect changes stays in memory until a hello_ok verifies, also where it leads to the base; only dropping and
//   forgetting write earlier. Each verified hello_ok orders the record anew, which is the retry after a failed write.
// - The backoff of a 4421 without credit raises the attempt like any other; "attempt unchanged" is about following.
// - A wake or new network ends the wait it meets, without restoring credit. Reports of one kind within 5 s of one that ended
//   a wait are the same wake. Of L28's larger of two waits it ends the backoff's part only. A wait already due when the
//   report comes has run to its end.
// - L28's maximum takes one random number for both sides.
// - L23's least attempt holds for every backoff, after a 4503 too, until a link has lived 10 min since.
// - A link's age is judged when it ends. A 4421 ends a link without touching the attempt, however long it lived.

import { judgeRecord, keptFor, persist } from "./kept-host.ts";
import { failDial, loseLink, restartLink } from "./link-endings.ts";
import type { LinkEffect, LinkEvent, RehomedEvent, StartedEvent, VerifiedEvent } from "./link-event.ts";
import { redirectDial, redirectLink } from "./link-redirect.ts";
import type { FollowerIn, LinkFollower, LinkFollowerOptions, LinkPhase } from "./link-state.ts";
import { troubleOfClose } from "./link-trouble.ts";
import { dialNext, finishWait, wakeWait, type LinkStep } from "./link-waits.ts";
import { clampSpreadMs } from "./restart-spread.ts";

type PhaseKind = LinkPhase["kind"];
type EventKind = LinkEvent["kind"];
type Transition<Phase extends PhaseKind, Kind extends EventKind> = (
  state: FollowerIn<Phase>,
  event: Extract<LinkEvent, { readonly kind: Kind }>,
) => LinkStep;

/** The state of a client that has not started. */
export function createLinkFollower({ base, home, isFollowing }: LinkFollowerOptions): LinkFollower {
  return {
    base,
    home,
    isFollowing,
    kept: undefined,
    hops: 0,
    attempt: 0,
    failures: undefined,
    hasCredit: true,
    isReplaced: false,
    wokenAtMs: { woke: -Infinity, "network-changed": -Infinity },
    phase: { kind: "idle" },
  };
}

/** Applies one event. */
export function stepLinkFollower(state: LinkFollower, event: LinkEvent): LinkStep {
  const transition = TRANSITIONS[state.phase.kind][event.kind] as (
    state: LinkFollower,
    event: LinkEvent,
  ) => LinkStep;
  return transition(state, event);
}

const ignore = (state: LinkFollower): LinkStep => ({ state, effects: [] });

const TRANSITIONS: {
  readonly [Phase in PhaseKind]: { readonly [Kind in EventKind]: Transition<Phase, Kind> };
} = {
  idle: {
    started: start,
    "timer-fired": ignore,
    "dial-failed": ignore,
    redirected: ignore,
    restarting: ignore,
    verified: ignore,
    lost: ignore,
    woke: ignore,
    "network-changed": ignore,
    rehomed: (state, event) =>
      event.home === undefined ? rehome(state, event) : ignore({ ...state, home: event.home }),
  },
  unlinked: {
    started: ignore,
    "timer-fired": ignore,
    "dial-failed": ignore,
    redirected: ignore,
    restarting: ignore,
    verified: ignore,
    lost: ignore,
    woke: ignore,
    "network-changed": ignore,
    rehomed: rehome,
  },
  dialing: {
    started: ignore,
    "timer-fired": ignore,
    "dial-failed": (state, event) => failDial(state, event, event.cause),
    redirected: redirectDial,
    restarting: (state, event) => failDial(state, event, "restarting"),
    verified: verify,
    lost: ignore,
    woke: forgive,
    "network-changed": forgive,
    rehomed: rehome,
  },
  waiting: {
    started: ignore,
    "timer-fired": finishWait,
    "dial-failed": ignore,
    redirected: ignore,
    restarting: ignore,
    verified: ignore,
    lost: ignore,
    woke: wakeWait,
    "network-changed": wakeWait,
    rehomed: rehome,
  },
  online: {
    started: ignore,
    "timer-fired": ignore,
    "dial-failed": ignore,
    redirected: redirectLink,
    restarting: restartLink,
    verified: ignore,
    lost: (state, event) => loseLink(state, event, event.cause ?? troubleOfClose(event.closeCode, "lost")),
    woke: forgive,
    "network-changed": forgive,
    rehomed: rehome,
  },
};

function start(state: LinkFollower, { record }: StartedEvent): LinkStep {
  const { kept, warnings } = judgeRecord(state, record);
  return dialNext({ ...state, kept }, warnings);
}

/** L12. */
function verify(state: FollowerIn<"dialing">, { atMs, spreadMs }: VerifiedEvent): LinkStep {
  const { host } = state.phase;
  const kept = keptFor(state, host);
  const phase = {
    kind: "online",
    host,
    sinceMs: atMs,
    spreadMs: spreadMs === undefined ? undefined : clampSpreadMs(spreadMs),
  } as const;
  return {
    state: { ...state, kept, hops: 0, failures: undefined, phase },
    effects: persist(state.home, kept),
  };
}

/** L14: what failed before a sleep or on another network says nothing about K. */
function forgive(state: LinkFollower): LinkStep {
  return { state: { ...state, failures: undefined }, effects: [] };
}

/** L18. */
function rehome(state: LinkFollower, { home }: RehomedEvent): LinkStep {
  if (home === state.home) return ignore(state);
  const { base, isFollowing } = state;
  const hangUp: LinkEffect = { kind: "hang-up" };
  if (home === undefined) {
    const unlinked = createLinkFollower({ base, isFollowing, home: "" });
    const effects = [hangUp, ...persist(state.home, undefined)];
    return { state: { ...unlinked, home, phase: { kind: "unlinked" } }, effects };
  }
  return dialNext(createLinkFollower({ base, isFollowing, home }), [hangUp, ...persist(home, undefined)]);
}
