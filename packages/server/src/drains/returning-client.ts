// Clients on their way back after a drain, as a forecast drives them: one as Moor's are, and one that knows no better.
//
// Spec: L14–L17.   Pure: time and randomness are parameters.

import { createLinkFollower, stepLinkFollower, type LinkEvent } from "@moor/protocol";

/** Within what time a naive client redials. Milliseconds. */
const NAIVE_REDIAL_MS = 500;

/** A client whose link was closed. */
export interface ReturningClient {
  /** When it dials first. Milliseconds. */
  firstDial(): number;
  /** When it dials next, a dial having failed at `atMs`. Milliseconds. */
  dialAfter(atMs: number): number;
}

/** What a client is made from. */
export interface ReturningClientOptions {
  /** When its link was closed with 4503. Milliseconds. */
  readonly closedAtMs: number;
  /** What the 4503 says. Milliseconds. */
  readonly spreadMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

const HOST = "base.example";

/** A client that has been linked for long. Its last steps are the same for all. */
const LINKED = (() => {
  const atMs = -3_600_000;
  const fresh = createLinkFollower({ base: HOST, home: "home", isFollowing: true });
  const dialling = stepLinkFollower(fresh, { kind: "started", atMs }).state;
  return stepLinkFollower(dialling, { kind: "verified", atMs }).state;
})();

/** A client as Moor's are: the follower that real ones run. */
export function createFollower({ closedAtMs, spreadMs, random }: ReturningClientOptions): ReturningClient {
  let state = LINKED;
  const dialOf = (first: LinkEvent): number => {
    let event = first;
    for (;;) {
      const step = stepLinkFollower(state, event);
      state = step.state;
      let atMs: number = event.atMs;
      for (const effect of step.effects) {
        if (effect.kind === "wait") atMs += effect.ms;
        if (effect.kind === "dial") return atMs;
      }
      event = { kind: "timer-fired", atMs };
    }
  };
  return {
    firstDial: () =>
      dialOf({ kind: "restarting", atMs: closedAtMs, random: random(), reason: String(spreadMs) }),
    dialAfter: (atMs) => dialOf({ kind: "dial-failed", atMs, random: random(), cause: "connect" }),
  };
}

/** A client that knows neither spread nor backoff. */
export function createNaive({ closedAtMs, random }: ReturningClientOptions): ReturningClient {
  const dialAfter = (atMs: number) => atMs + random() * NAIVE_REDIAL_MS;
  return { firstDial: () => dialAfter(closedAtMs), dialAfter };
}
