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

import type {
  DialFailedEvent,
  LinkEffect,
  LinkEvent,
  LinkWarning,
  LostEvent,
  RedirectedEvent,
  RehomedEvent,
  RestartingEvent,
  StartedEvent,
  VerifiedEvent,
} from "./link-event.ts";
import {
  LINK_CREDIT_MS,
  LINK_SETTLED_MS,
  REPLACED_SETTLED_MS,
  SHARD_HOST_FAIL_WINDOW_MS,
  SHARD_HOST_FAILS_MIN,
} from "./link-limits.ts";
import { CLOSE_CODE } from "./link-names.ts";
import type { LinkRecord } from "./link-record.ts";
import type { LinkFollower, LinkFollowerOptions, LinkPhase } from "./link-state.ts";
import { troubleOfClose, type LinkTrouble } from "./link-trouble.ts";
import { backOff, dialNext, finishWait, spreadOut, wakeWait, type LinkStep } from "./link-waits.ts";
import { clampSpreadMs, restartSpreadMs } from "./restart-spread.ts";
import { shardHostOk } from "./shard-host.ts";

type PhaseKind = LinkPhase["kind"];
type EventKind = LinkEvent["kind"];
type In<Kind extends PhaseKind> = LinkFollower<Extract<LinkPhase, { readonly kind: Kind }>>;
type Transition<Phase extends PhaseKind, Kind extends EventKind> = (
  state: In<Phase>,
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

/** L13: a record counts for the home it is of, and its host if this client may dial it. */
function judgeRecord(
  state: LinkFollower,
  record: LinkRecord | undefined,
): { readonly kept: string | undefined; readonly warnings: readonly LinkEffect[] } {
  const refuse = (code: LinkWarning) => ({
    kept: undefined,
    warnings: [{ kind: "warn", code } as const],
  });
  if (record?.host === undefined || !state.isFollowing) return { kept: undefined, warnings: [] };
  if (record.home !== state.home) return refuse("record-of-other-home");
  if (!shardHostOk(record.host, state.base)) return refuse("record-host-refused");
  return { kept: keptFor(state, record.host), warnings: [] };
}

/** K for a host: none if it is the base. */
function keptFor(state: LinkFollower, host: string): string | undefined {
  return host === state.base ? undefined : host;
}

/** L15, L14: counts the failure if it was at K, forgets K if that is due, and backs off. */
function failDial(
  state: In<"dialing">,
  { atMs, random }: Pick<DialFailedEvent, "atMs" | "random">,
  trouble: LinkTrouble,
  warnings: readonly LinkEffect[] = [],
): LinkStep {
  const begin = { atMs, random, trouble };
  if (state.kept === undefined || state.phase.host !== state.kept) return backOff(state, begin, warnings);
  const { count, sinceMs } = state.failures ?? { count: 0, sinceMs: atMs };
  const failures = { count: count + 1, sinceMs };
  const isForgotten = failures.count >= SHARD_HOST_FAILS_MIN && atMs - sinceMs >= SHARD_HOST_FAIL_WINDOW_MS;
  if (!isForgotten) return backOff({ ...state, failures }, begin, warnings);
  return backOff(withoutKept(state), begin, [...warnings, ...dropRecord(state, "host-forgotten")]);
}

/** L11 before hello_ok. */
function redirectDial(state: In<"dialing">, event: RedirectedEvent): LinkStep {
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

/** L11 after hello_ok. */
function redirectLink(state: In<"online">, event: RedirectedEvent): LinkStep {
  const lost = { ...event, kind: "lost", by: "peer", closeCode: CLOSE_CODE.wrongShard } as const;
  if (!state.isFollowing) return loseLink(state, lost, "redirect-unfollowed");
  if (!mayFollow(state, event.reason)) {
    const { state: next, effects } = loseLink(state, lost, "redirect-refused");
    return { state: next, effects: [{ kind: "warn", code: "redirect-refused" }, ...effects] };
  }
  return follow(settle(state, event.atMs), event);
}

function mayFollow(state: In<"dialing" | "online">, host: string): boolean {
  return shardHostOk(host, state.base) && host !== state.phase.host;
}

/** L11 (3), L17. */
function follow(state: LinkFollower, event: RedirectedEvent): LinkStep {
  const led = { ...state, kept: keptFor(state, event.reason), failures: undefined, hops: 1 };
  if (led.hasCredit) return dialNext({ ...led, hasCredit: false });
  return backOff(led, { ...event, trouble: "redirected" }, []);
}

/** L12. */
function verify(state: In<"dialing">, { atMs, spreadMs }: VerifiedEvent): LinkStep {
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

/** L16 after hello_ok. */
function restartLink(state: In<"online">, { atMs, random, reason }: RestartingEvent): LinkStep {
  const settled = { ...settle(state, atMs), attempt: 0 };
  return spreadOut(settled, { atMs, random, trouble: "restarting" }, restartSpreadMs(reason));
}

/** Close codes that tell of a peer that broke down rather than of this client; absent: EOF or reset. Spec L28. */
const BROKEN_CODES: readonly (number | undefined)[] = [undefined, 1001, 1006, 1011, 1012];

/** L15, L23, L28. */
function loseLink(state: In<"online">, event: LostEvent, trouble: LinkTrouble): LinkStep {
  const { atMs, by, closeCode } = event;
  const { sinceMs, spreadMs } = state.phase;
  const settled = settle(state, atMs);
  const isReplaced = by === "peer" && closeCode === CLOSE_CODE.replaced;
  const next = {
    ...settled,
    attempt: atMs - sinceMs >= LINK_SETTLED_MS ? 0 : settled.attempt,
    isReplaced: settled.isReplaced || isReplaced,
  };
  const isBroken = by === "peer" && BROKEN_CODES.includes(closeCode);
  const warnings: readonly LinkEffect[] = isReplaced ? [{ kind: "warn", code: "replaced" }] : [];
  return backOff(next, { ...event, trouble }, warnings, isBroken ? spreadMs : undefined);
}

/** What a link has earned when it ends. Spec L17, L23. */
function settle(state: In<"online">, atMs: number): LinkFollower {
  const livedMs = atMs - state.phase.sinceMs;
  return {
    ...state,
    hasCredit: state.hasCredit || livedMs >= LINK_CREDIT_MS,
    isReplaced: state.isReplaced && livedMs < REPLACED_SETTLED_MS,
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

function withoutKept(state: LinkFollower): LinkFollower {
  return { ...state, kept: undefined, hops: 0, failures: undefined };
}

function dropRecord(
  state: LinkFollower,
  code: "host-forgotten" | "redirect-repeated",
): readonly LinkEffect[] {
  return [{ kind: "warn", code }, ...persist(state.home, undefined)];
}

function persist(home: string | undefined, host: string | undefined): readonly LinkEffect[] {
  return home === undefined ? [] : [{ kind: "persist", home, host }];
}
