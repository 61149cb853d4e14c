// Replays one sequence of vectors/link-sequences.json on real sockets: a client on a clock of the replay's own, against a
// service in its hands.
//
// Spec: L8; vectors/README.md, "Replaying link sequences".
// I1  Every dial waits, at its TLS handshake or its upgrade, until the next fact says what it meets; what the client has given
//     up is left alone: a browser whose handshake is broken off makes another by itself. I2  What a client shows
//     after a step is judged when it has shown something, or when the step is over without sockets.

import assert from "node:assert/strict";
import type { ClientLinkState } from "@moor/client";
import { parseLinkRecord, shardHostOk } from "@moor/protocol";
import {
  makeServiceKey,
  type FakeDial,
  type FakeLink,
  type FakeLinkService,
  type FakeTlsHello,
  type HelloOkWords,
} from "@moor/testkit";
import type { LinkFact, LinkSequence, LinkStepRecipe } from "../conformance/link-vector-files.ts";

/** One client over its processes, with a clock and a random source that the replay moves. */
export interface ReplayedClient {
  /** Starts a process of `home`; `record` replaces what the record holds. */
  start(home: string, record: string | undefined): Promise<void>;
  /** Ends the process there is. */
  kill(): Promise<void>;
  /** The random number it draws from now on. */
  draw(random: number): Promise<void>;
  /** Time goes on, and timers fire when they are due. */
  advance(byMs: number): Promise<void>;
  /** As `advance`, but no further than to the timer that makes it show a state. */
  advanceToState(byMsMost: number): Promise<void>;
  /** Time goes on while the machine sleeps. */
  sleepThrough(byMs: number): Promise<void>;
  wake(kind: "woke" | "network-changed"): Promise<void>;
  rehome(home: string | undefined): Promise<void>;
  setWritable(isWritable: boolean): Promise<void>;
  nowMs(): Promise<number>;
  /** The next state it shows. */
  nextState(): Promise<ClientLinkState>;
  /** The states shown and not asked for. */
  takeStates(): Promise<readonly ClientLinkState[]>;
  /** The record's text once no write is under way. */
  record(): Promise<string | undefined>;
}

/** Silence that ends a link that pings every 25 s. Spec L32. */
const SILENCE_MS = 62_500;
/** Time a client gives a dial to its 101, and from there to hello_ok. Spec L15. */
const DIAL_MS = 15_000;
/** Time passes in pieces of this size on a live link, with a sign of life after each. */
const PIECE_MS = 20_000;
const MS_TOLERANCE = 1e-6;

/** Throws on the first difference, naming the step. */
export async function replayLinkSequence(
  service: FakeLinkService,
  client: ReplayedClient,
  sequence: LinkSequence,
): Promise<void> {
  const replay = new Replay(service, client, sequence);
  for (const [index, step] of sequence.steps.entries()) {
    await replay.play(step, `step ${index + 1} (${step.do})`);
  }
  await replay.end();
}

/** What a dial or a link meets, but for silence and success. */
type EndingFact = Extract<
  LinkFact,
  { readonly do: "refuse" | "bad-certificate" | "end" | "http" | "bad-hello-ok" | "close" }
>;

/** Who is at the other end of a dial by now. */
type Peer =
  | { readonly kind: "hello"; readonly hello: FakeTlsHello }
  | { readonly kind: "dial"; readonly dial: FakeDial }
  | { readonly kind: "link"; readonly link: FakeLink; readonly isLive: boolean };

class Replay {
  readonly #service: FakeLinkService;
  readonly #client: ReplayedClient;
  readonly #sequence: LinkSequence;
  #home: string | undefined;
  #state: ClientLinkState = { kind: "idle" };
  #peer: Peer | undefined;
  #dials: string[] = [];

  constructor(service: FakeLinkService, client: ReplayedClient, sequence: LinkSequence) {
    this.#service = service;
    this.#client = client;
    this.#sequence = sequence;
    this.#home = sequence.home;
  }

  async play(step: LinkStepRecipe, place: string): Promise<void> {
    await this.#pass(step.afterMs ?? 0);
    await this.#client.draw(step.random ?? 0);
    await this.#do(step);
    for (const state of await this.#client.takeStates()) await this.#show(state);
    const { expect } = step;
    assert.deepEqual(this.#dials.splice(0), expect.dials, `${place}: hosts dialled`);
    assert.equal(this.#stateName(), expect.state, `${place}: state`);
    await this.#assertWait(expect.waitMs, place);
    const record = await this.#client.record();
    assert.equal(this.#keptOf(record) ?? null, expect.kept, `${place}: kept host`);
    if (expect.record !== undefined) assert.deepEqual(JSON.parse(record ?? "null"), expect.record, place);
  }

  async end(): Promise<void> {
    await this.#client.kill();
    this.#peer = undefined;
    await this.#client.takeStates();
    assert.equal(this.#service.requests.size, 0, "nothing was asked over HTTP");
    assert.equal(this.#service.dials.size + this.#service.tlsHellos.size, 0, "no further host was dialled");
  }

  async #do(step: LinkStepRecipe): Promise<void> {
    const client = this.#client;
    switch (step.do) {
      case "start":
        this.#home = step.home ?? this.#home;
        await client.kill();
        this.#peer = undefined;
        await client.takeStates();
        await client.start(this.#home ?? "", step.record);
        return this.#show(await client.nextState());
      case "disk":
        return client.setWritable(step.writes === "work");
      case "wait":
        return this.#endWait(step.lateMs);
      case "woke":
      case "network-changed":
        await client.wake(step.do);
        return this.#exchange();
      case "unlink":
      case "rehome":
        this.#home = step.do === "rehome" ? step.home : undefined;
        await client.rehome(this.#home);
        this.#peer = undefined;
        return;
      case "verify":
        await (
          await this.#greeted()
        ).welcome({
          ping_ms: 25_000,
          ...(step.spreadMs !== undefined && { spread_ms: step.spreadMs }),
        });
        return this.#show(await client.nextState());
      case "silence":
        return this.#stayed(step.until);
      case "refuse":
      case "bad-certificate":
      case "http":
      case "bad-hello-ok":
      case "close":
      case "end":
        await this.#meet(step);
        return this.#show(await client.nextState());
    }
  }

  /** Lets time pass; a live link has signs of life in it. */
  async #pass(byMs: number): Promise<void> {
    for (let leftMs = byMs; leftMs > 0; leftMs -= PIECE_MS) {
      await this.#client.advance(Math.min(leftMs, PIECE_MS));
      await this.#exchange();
    }
  }

  /** A ping and its pong: the client has heard the service, and the service knows it. */
  async #exchange(): Promise<void> {
    if (this.#peer?.kind !== "link" || !this.#peer.isLive) return;
    await this.#peer.link.send({ t: "ping" });
    await this.#peer.link.expect("pong");
  }

  async #endWait(lateMs: number | undefined): Promise<void> {
    const { untilMs } = this.#state as Extract<ClientLinkState, { untilMs: number }>;
    const leftMs = untilMs - (await this.#client.nowMs());
    if (lateMs === undefined) return this.#client.advanceToState(leftMs + MS_TOLERANCE);
    return this.#client.sleepThrough(leftMs + lateMs);
  }

  /** The client gives up by itself. */
  async #stayed(until: "upgrade" | "hello_ok" | undefined): Promise<void> {
    if (until === "upgrade") await this.#dial();
    if (until === "hello_ok") await this.#greeted();
    await this.#client.advanceToState(until === undefined ? SILENCE_MS : DIAL_MS);
    this.#peer = undefined;
  }

  async #meet(fact: EndingFact): Promise<void> {
    switch (fact.do) {
      case "refuse":
        // After the handshake: a browser tries one that breaks once more by itself.
        (await this.#dial()).reset();
        this.#peer = undefined;
        return;
      case "bad-certificate":
        if (this.#peer?.kind === "hello") this.#peer.hello.proceed("other-name");
        else (await this.#dial()).reset();
        this.#peer = undefined;
        return;
      case "http":
        // A name of its own, so that whoever follows it is seen.
        (await this.#dial()).answer(fact.status, { Location: `https://followed.${this.#sequence.base}/` });
        this.#peer = undefined;
        return;
      case "bad-hello-ok":
        await (await this.#greeted()).welcome(this.#wrong(fact.fault));
        this.#peer = undefined;
        return;
      case "close":
        await (await this.#greeted()).close(fact.code, fact.reason);
        this.#peer = undefined;
        return;
      case "end":
        (await this.#greeted()).drop();
        this.#peer = undefined;
        return;
    }
  }

  #wrong(fault: Extract<LinkFact, { do: "bad-hello-ok" }>["fault"]): HelloOkWords {
    switch (fault) {
      case "signature":
        return { isForged: true };
      case "key":
        return { by: makeServiceKey() };
      case "host":
        return { host: `other.${this.#sequence.base}` };
      case "home":
        return { home: "another" };
      case "nonce":
        return { clientNonce: "A".repeat(43) };
      case "generation":
        return { generation: "01" };
    }
  }

  /** Takes note of a state; the dial it tells of is met at its first byte. */
  async #show(state: ClientLinkState): Promise<void> {
    this.#state = state;
    if (state.kind === "connecting") {
      this.#dials.push(state.host);
      this.#peer = await this.#nextPeer(state.host);
    }
    if (state.kind === "online" && this.#peer?.kind === "link") this.#peer = { ...this.#peer, isLive: true };
  }

  async #nextPeer(host: string): Promise<Peer> {
    // An address has no name to ask for in a handshake.
    const hasName = this.#service.certificates !== undefined && !/^[\d.]+$/.test(host);
    if (hasName) {
      const hello = await this.#service.tlsHellos.take();
      assert.equal(hello.host, host, "the name asked for in the TLS handshake");
      return { kind: "hello", hello };
    }
    return { kind: "dial", dial: await this.#takeDial(host) };
  }

  async #takeDial(host: string): Promise<FakeDial> {
    const dial = await this.#service.dials.take();
    assert.equal(dial.host, host, "the Host header");
    return dial;
  }

  async #dial(): Promise<FakeDial> {
    const peer = this.#peer;
    if (peer?.kind === "dial") return peer.dial;
    assert.ok(peer?.kind === "hello", "there is a dial");
    peer.hello.proceed();
    const dial = await this.#takeDial(peer.hello.host);
    this.#peer = { kind: "dial", dial };
    return dial;
  }

  /** The link, its hello read. */
  async #greeted(): Promise<FakeLink> {
    if (this.#peer?.kind === "link") return this.#peer.link;
    const link = (await this.#dial()).upgrade();
    this.#peer = { kind: "link", link, isLive: false };
    const { caps, home } = await link.hello();
    assert.deepEqual([caps.includes("shard"), home], [this.#sequence.follows, this.#home]);
    return link;
  }

  #stateName(): string {
    return this.#state.kind === "refused" ? "reconnecting" : this.#state.kind;
  }

  async #assertWait(waitMs: number | null, place: string): Promise<void> {
    const nowMs = await this.#client.nowMs();
    const shown = "untilMs" in this.#state ? this.#state.untilMs - nowMs : null;
    const isSame =
      shown === null || waitMs === null ? shown === waitMs : Math.abs(shown - waitMs) <= MS_TOLERANCE;
    assert.ok(isSame, `${place}: waits ${String(shown)} ms, expected ${String(waitMs)}`);
  }

  /** L13: the host that a process started now would take. */
  #keptOf(text: string | undefined): string | undefined {
    const { base } = this.#sequence;
    const record = text === undefined ? undefined : parseLinkRecord(text);
    if (record?.host === undefined || record.home !== this.#home || record.host === base) return undefined;
    return shardHostOk(record.host, base) ? record.host : undefined;
  }
}
