// Replays one sequence of vectors/link-sequences.json against LinkFollower, its record kept in memory.

import assert from "node:assert/strict";
import type { LinkEffect, LinkEvent, LinkFollower, LinkRecord, LinkTrouble } from "@moor/protocol";
import type { LinkFact, LinkSequence, LinkStepRecipe } from "./link-vector-files.ts";
import { assertMs, type ProtocolModule } from "./vector-terms.ts";

/** Time a client gives a dial to its 101, and from there to hello_ok. Spec L15. */
const DIAL_MS = 15_000;

/** Silence that ends a link that pings every 25 s. Spec L32. */
const SILENCE_MS = 62_500;

/** Throws on the first difference, naming the step. */
export function replayLinkSequence(protocol: ProtocolModule, sequence: LinkSequence): void {
  const client = new ScriptedClient(protocol, sequence);
  for (const [index, step] of sequence.steps.entries()) {
    const place = `step ${index + 1} (${step.do})`;
    client.play(step, place);
    const { expect } = step;
    assert.deepEqual(client.takeDials(), expect.dials, `${place}: hosts dialled`);
    assertMs(client.waitMs(), expect.waitMs, place);
    assert.equal(client.stateName(), expect.state, `${place}: state`);
    assert.equal(client.kept() ?? null, expect.kept, `${place}: kept host`);
    if (expect.record !== undefined) assert.deepEqual(client.recordMembers(), expect.record, place);
  }
}

/** What ends a dial or a link. */
type EndingFact = Exclude<
  LinkFact,
  { readonly do: "start" | "wait" | "woke" | "network-changed" | "unlink" | "rehome" | "disk" | "verify" }
>;

/** One client over its processes, on a clock of its own. */
class ScriptedClient {
  readonly #protocol: ProtocolModule;
  readonly #base: string;
  readonly #isFollowing: boolean;
  #home: string | undefined;
  #state: LinkFollower;
  #atMs = 0;
  #dials: string[] = [];
  #recordText: string | undefined;
  #canWrite = true;

  constructor(protocol: ProtocolModule, { base, home, follows }: LinkSequence) {
    this.#protocol = protocol;
    this.#base = base;
    this.#home = home;
    this.#isFollowing = follows;
    this.#state = protocol.createLinkFollower({ base, home, isFollowing: follows });
  }

  play(step: LinkStepRecipe, place: string): void {
    this.#atMs += step.afterMs ?? 0;
    const { random = 0 } = step;
    const { phase } = this.#state;
    switch (step.do) {
      case "start":
        this.#home = step.home ?? this.#home;
        return this.#start(step.record);
      case "disk":
        this.#canWrite = step.writes === "work";
        return;
      case "wait":
        assert.equal(phase.kind, "waiting", place);
        if (phase.kind === "waiting") this.#atMs = phase.untilMs + (step.lateMs ?? 0);
        return this.#report({ kind: "timer-fired", atMs: this.#atMs });
      case "woke":
      case "network-changed":
        return this.#report({ kind: step.do, atMs: this.#atMs });
      case "unlink":
      case "rehome":
        this.#home = step.do === "rehome" ? step.home : undefined;
        return this.#report({ kind: "rehomed", atMs: this.#atMs, home: this.#home });
      case "verify":
        assert.equal(phase.kind, "dialing", place);
        return this.#report({ kind: "verified", atMs: this.#atMs, spreadMs: step.spreadMs });
      case "refuse":
      case "bad-certificate":
      case "http":
      case "silence":
      case "bad-hello-ok":
      case "close":
      case "end":
        return this.#endLink(step, random, place);
    }
  }

  takeDials(): readonly string[] {
    return this.#dials.splice(0);
  }

  waitMs(): number | undefined {
    const shown = this.#protocol.linkState(this.#state);
    return "untilMs" in shown ? shown.untilMs - this.#atMs : undefined;
  }

  stateName(): string {
    const { kind } = this.#protocol.linkState(this.#state);
    return kind === "refused" ? "reconnecting" : kind;
  }

  /** The host a process started now would take from the record. Spec L13. */
  kept(): string | undefined {
    const record = this.#record();
    if (record?.home !== this.#home || record?.host === undefined || record.host === this.#base)
      return undefined;
    return this.#protocol.shardHostOk(record.host, this.#base) ? record.host : undefined;
  }

  recordMembers(): unknown {
    return JSON.parse(this.#recordText ?? "null");
  }

  #start(record: string | undefined): void {
    this.#recordText = record ?? this.#recordText;
    assert.ok(this.#home !== undefined, "a process that starts belongs to a home");
    const options = { base: this.#base, home: this.#home, isFollowing: this.#isFollowing };
    this.#state = this.#protocol.createLinkFollower(options);
    this.#report({ kind: "started", atMs: this.#atMs, record: this.#record() });
  }

  #endLink(step: EndingFact, random: number, place: string): void {
    const { phase } = this.#state;
    assert.ok(phase.kind === "dialing" || phase.kind === "online", `${place}: there is a dial or a link`);
    if (step.do === "silence") this.#atMs += phase.kind === "online" ? SILENCE_MS : DIAL_MS;
    const at = { atMs: this.#atMs, random };
    if (step.do === "close" && step.code === this.#protocol.CLOSE_CODE.wrongShard) {
      this.#report({ kind: "redirected", ...at, reason: step.reason });
    } else if (step.do === "close" && step.code === this.#protocol.CLOSE_CODE.restart) {
      this.#report({ kind: "restarting", ...at, reason: step.reason });
    } else if (phase.kind === "dialing") {
      this.#report({ kind: "dial-failed", ...at, cause: this.#causeOf(step) });
    } else {
      const closeCode = step.do === "close" ? step.code : undefined;
      this.#report({ kind: "lost", ...at, by: step.do === "silence" ? "client" : "peer", closeCode });
    }
  }

  #causeOf(step: EndingFact): LinkTrouble {
    switch (step.do) {
      case "refuse":
        return "refused";
      case "bad-certificate":
        return "tls-name";
      case "http":
        return this.#protocol.troubleOfUpgrade(step.status);
      case "silence":
        return step.until === "upgrade" ? "no-answer" : "no-hello-ok";
      case "bad-hello-ok":
        return "bad-signature";
      case "close":
        return this.#protocol.troubleOfClose(step.code, "closed");
      case "end":
        return "closed";
    }
  }

  #report(event: LinkEvent): void {
    const { state, effects } = this.#protocol.stepLinkFollower(this.#state, event);
    this.#state = state;
    for (const effect of effects) this.#obey(effect);
  }

  #obey(effect: LinkEffect): void {
    if (effect.kind === "dial") this.#dials.push(effect.host);
    if (effect.kind !== "persist" || !this.#canWrite) return;
    const home = this.#protocol.parseHomeId(effect.home);
    assert.ok(home !== undefined, "homes of the vectors are homes");
    const { unknownMembers } = this.#record() ?? {};
    this.#recordText = this.#protocol.encodeLinkRecord({ home, host: effect.host, unknownMembers });
  }

  #record(): LinkRecord | undefined {
    return this.#recordText === undefined ? undefined : this.#protocol.parseLinkRecord(this.#recordText);
  }
}
