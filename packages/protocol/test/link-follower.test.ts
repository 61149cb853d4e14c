// The rules of a following client, one by one. Walks of random events: link-follower-walk.test.ts.

import { describe, expect } from "vitest";
import {
  createLinkFollower,
  linkState,
  parseHomeId,
  stepLinkFollower,
  type HomeId,
  type LinkEffect,
  type LinkEvent,
  type LinkFollower,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";

const base = "cloud.ftw.energy";
const A = `a.${base}`;
const B = `b.${base}`;
const home = parseHomeId("villa") as HomeId;

/** An event without its time and random number. */
type Fact = LinkEvent extends infer Event
  ? Event extends LinkEvent
    ? Omit<Event, "atMs" | "random">
    : never
  : never;

/** A follower on a clock of its own; random numbers are 0.5. */
class Client {
  state: LinkFollower;
  atMs = 0;
  effects: readonly LinkEffect[] = [];

  constructor(isFollowing = true) {
    this.state = createLinkFollower({ base, home, isFollowing });
  }

  /** Reports a fact `afterMs` after the one before; returns what is ordered, as texts. */
  report(fact: Fact, afterMs = 0): readonly string[] {
    this.atMs += afterMs;
    const step = stepLinkFollower(this.state, { ...fact, atMs: this.atMs, random: 0.5 } as LinkEvent);
    this.state = step.state;
    this.effects = step.effects;
    return step.effects.map(textOf);
  }

  /** Lets the present wait run to its end, late by `lateMs`. */
  rest(lateMs = 0): readonly string[] {
    const { phase } = this.state;
    if (phase.kind !== "waiting") throw new Error(`${phase.kind}, not waiting`);
    return this.report({ kind: "timer-fired" }, phase.untilMs - this.atMs + lateMs);
  }
}

function textOf(effect: LinkEffect): string {
  switch (effect.kind) {
    case "dial":
      return `dial ${effect.host}`;
    case "wait":
      return `${effect.cause} ${effect.ms}`;
    case "persist":
      return `persist ${effect.home} ${effect.host ?? "-"}`;
    case "warn":
      return `warn ${effect.code}`;
    case "hang-up":
      return effect.kind;
  }
}

const start = { kind: "started" } as const;
const keptA = { kind: "started", record: { home, host: A } } as const;
const refused = { kind: "dial-failed", cause: "connect" } as const;
const verified = { kind: "verified" } as const;
const redirectTo = (reason: string) => ({ kind: "redirected", reason }) as const;
const restart = (reason: string) => ({ kind: "restarting", reason }) as const;
const lost = { kind: "lost", by: "peer", closeCode: 1000 } as const;

describe("a following client", () => {
  verifies(["L11", "L12"], "follows a redirect at once and keeps its host once hello_ok verifies", () => {
    const client = new Client();
    expect(client.report(start)).toEqual([`dial ${base}`]);
    expect(client.report(redirectTo(A))).toEqual([`dial ${A}`]);
    expect(client.report(verified)).toEqual([`persist villa ${A}`]);
    expect(client.state).toMatchObject({ kept: A, hops: 0, attempt: 0, hasCredit: false });
    expect(linkState(client.state)).toEqual({ kind: "online", host: A, sinceMs: 0 });
    expect(new Client().report(keptA)).toEqual([`dial ${A}`]);
  });

  verifies(
    "L11",
    "drops the host and dials the base after a second redirect in a row, whatever it names",
    () => {
      for (const reason of [B, base, "evil.example", A]) {
        const client = new Client();
        client.report(start);
        client.report(redirectTo(A));
        expect(client.report(redirectTo(reason))).toEqual([
          "warn redirect-repeated",
          "persist villa -",
          "backoff 250",
        ]);
        expect(client.state).toMatchObject({ kept: undefined, hops: 0 });
        expect(client.rest()).toEqual([`dial ${base}`]);
      }
    },
  );

  verifies(["L4", "L11"], "takes a redirect to a bad host or to the one dialled for a failed dial", () => {
    for (const reason of ["evil.example", `A.${base}`, base, ""]) {
      const client = new Client();
      client.report(start);
      expect(client.report(redirectTo(reason))).toEqual(["warn redirect-refused", "backoff 250"]);
      expect(client.rest()).toEqual([`dial ${base}`]);
    }
  });

  verifies(
    "L14",
    "keeps a host through 2 failures in 40 s and 10 in 25 s, and forgets it at the third after 30 s",
    () => {
      const slow = new Client();
      slow.report(keptA);
      slow.report(refused);
      slow.rest();
      slow.report(refused, 40_000);
      expect(slow.state).toMatchObject({ kept: A, failures: { count: 2, sinceMs: 0 } });
      slow.rest();
      expect(slow.report(refused)).toContain("warn host-forgotten");

      const quick = new Client();
      quick.report(keptA);
      for (let count = 0; count < 10; count += 1) {
        quick.state = { ...quick.state, phase: { kind: "dialing", host: A } };
        quick.report(refused, 2_500);
      }
      expect(quick.state).toMatchObject({ kept: A, failures: { count: 10 } });
    },
  );

  verifies(["L16", "L5"], "comes back to the same host within the spread, however often", () => {
    const client = new Client();
    client.report(keptA);
    for (let count = 0; count < 5; count += 1) {
      client.report(verified);
      expect(client.report(restart("20000"))).toEqual(["spread 10000"]);
      expect(client.report({ kind: "woke" }, 100)).toEqual([]);
      expect(client.rest()).toEqual([`dial ${A}`]);
    }
    expect(client.report(restart("60000"))).toEqual(["backoff 250"]);
  });

  verifies("L17", "two hosts that name each other cause one instant redial for each wait", () => {
    const client = new Client();
    client.report(keptA);
    client.report(verified);
    expect(client.report(redirectTo(B), 1_000)).toEqual([`dial ${B}`]);
    client.report(verified);
    expect(client.report(redirectTo(A), 1_000)).toEqual(["backoff 250"]);
    expect(client.state).toMatchObject({ kept: A });
    client.rest();
    client.report(verified);
    expect(client.report(redirectTo(B))).toEqual([`dial ${B}`]);
  });

  verifies(["L15", "L28"], "backs off after a lost link, over the spread where the peer broke down", () => {
    const client = new Client();
    client.report(start);
    client.report({ ...verified, spreadMs: 20_000 });
    expect(client.report({ kind: "lost", by: "peer", closeCode: 1006 })).toEqual(["spread 10000"]);
    client.rest();
    client.report({ ...verified, spreadMs: 20_000 });
    expect(client.report({ kind: "lost", by: "client" }, 60_000)).toEqual(["backoff 250"]);
  });

  verifies("L23", "waits as after five failures once it was replaced, until a link has lived 10 min", () => {
    const client = new Client();
    client.report(start);
    client.report(verified);
    expect(client.report({ kind: "lost", by: "peer", closeCode: 4409 }, 599_999)).toEqual([
      "warn replaced",
      "backoff 8000",
    ]);
    client.rest();
    client.report(verified);
    expect(client.report(lost, 599_999)).toEqual(["backoff 8000"]);
    client.rest();
    client.report(verified);
    expect(client.report(lost, 600_000)).toEqual(["backoff 250"]);
  });

  verifies("L18", "forgets its host when it is unlinked or belongs to another home", () => {
    const client = new Client();
    client.report(keptA);
    client.report(verified);
    expect(client.report({ kind: "rehomed", home: "cabin" })).toEqual([
      "hang-up",
      "persist cabin -",
      `dial ${base}`,
    ]);
    expect(client.report({ kind: "rehomed" })).toEqual(["hang-up", "persist cabin -"]);
    expect(linkState(client.state)).toEqual({ kind: "unlinked" });
    expect(client.report({ kind: "rehomed", home })).toEqual(["hang-up", "persist villa -", `dial ${base}`]);
  });

  verifies("L13", "does not dial a host of a record that is foreign or not below its own base", () => {
    const foreign = { home: parseHomeId("cabin") as HomeId, host: A };
    expect(new Client().report({ kind: "started", record: foreign })).toEqual([
      "warn record-of-other-home",
      `dial ${base}`,
    ]);
    expect(new Client().report({ kind: "started", record: { home, host: "evil.example" } })).toEqual([
      "warn record-host-refused",
      `dial ${base}`,
    ]);
  });
});

verifies("L6", "a client that does not follow stays at its base, whatever it is told", () => {
  const client = new Client(false);
  expect(client.report(keptA)).toEqual([`dial ${base}`]);
  expect(client.report(redirectTo(A))).toEqual(["warn redirect-unfollowed", "backoff 250"]);
  expect(linkState(client.state)).toMatchObject({ kind: "refused", why: "redirect-unfollowed" });
  client.rest();
  client.report(verified);
  expect(client.report(redirectTo(A))).toEqual(["backoff 500"]);
  expect(client.rest()).toEqual([`dial ${base}`]);
});
