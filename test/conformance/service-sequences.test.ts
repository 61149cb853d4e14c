// The sequences of vectors/ from the service's side: for each answer that a service of R4, R5, R22–R24 gives, the real
// service in the same situation gives it too; an answer that only a broken service would give, it does not.
//
// The clock and the network are virtual, the client is the machine of @moor/protocol, the service is a bootstrap entry
// with two shard nodes. Revisions of a vector keep their order, not their numbers.

import {
  classifyPollAnswer,
  createPollRouting,
  parseCorrection,
  startPoll,
  stepPollRouting,
  type PollEnding,
  type PollRouting,
} from "@moor/protocol";
import { describe, expect } from "vitest";
import { verifies } from "@moor/testkit";
import type { FakeExchange } from "../../packages/server/test/support/fake-exchange.ts";
import { callRequest, pollRequest } from "../../packages/server/test/support/requests.ts";
import { SimulatedCluster } from "../../packages/server/test/support/simulated-cluster.ts";
import { bytesOf, readVectors, type SequenceStep } from "./vector-files.ts";

const CAPABLE = ["X-Tunnel-Client-Capabilities", "wrong-cluster-v1"];
const HOLD_MS = 1_000;

type AnswerStep = Extract<SequenceStep, { readonly do: "answer" }>;

/** One sequence played to the real service. */
class ServiceReplay {
  readonly cluster = new SimulatedCluster({
    isCorrecting: true,
    nodes: [
      { id: "a", shards: ["s1"] },
      { id: "b", shards: ["s2"] },
      { id: "e", shards: [], isBootstrap: true },
    ],
  });
  routing: PollRouting = createPollRouting();
  emitted = 0;
  #made: Awaited<ReturnType<SimulatedCluster["tunnel"]>> | undefined;
  #newestOfVector = -1;
  #tokenless = 0;

  async start(): Promise<void> {
    await this.cluster.advance(1_000);
    this.#made = await this.cluster.tunnel("s1");
  }

  /** Plays what one answer of the vector says to the service in its present situation. */
  async play(step: AnswerStep): Promise<void> {
    if (step.expect.outcome === "correction") return this.#playCorrection(step);
    if (step.expect.outcome === "success") return this.#playSuccess(step);
    // Faults, errors and malformed corrections are not the service's to give: the client's state stays as it is.
  }

  async #playCorrection(step: AnswerStep): Promise<void> {
    const { revision } = vectorCorrection(step);
    const isNews = revision > this.#newestOfVector;
    if (isNews && this.routing.watermark !== undefined) await this.#move();
    this.#newestOfVector = Math.max(this.#newestOfVector, revision);
    const before = this.routing;
    const isTokenless = before.activeToken === undefined;
    const poll = await this.#poll();
    if (isNews || (isTokenless && this.#tokenless < 3)) {
      this.#tokenless = isTokenless ? this.#tokenless + 1 : this.#tokenless;
      const read = parseCorrection(
        { status: poll.status ?? 0, headerLines: headerLines(poll) },
        body(poll),
        true,
      );
      expect(read, "the service corrects").toMatchObject({ ok: true });
      this.#take(poll);
      expect(this.routing.watermark?.revision ?? 0).toBeGreaterThanOrEqual(before.watermark?.revision ?? 0);
      this.emitted += 1;
      return;
    }
    // Older, equal or conflicting: a service that keeps R22–R24 serves instead.
    expect(poll.status, "the service serves a token at its own revision").toBeUndefined();
    await this.cluster.advance(HOLD_MS);
    this.#take(poll);
    this.#tokenless = 0;
  }

  async #playSuccess(step: AnswerStep): Promise<void> {
    let poll = await this.#poll();
    while (poll.status === 409) {
      this.#take(poll);
      poll = await this.#poll();
    }
    if (step.expect.commands !== 0 && step.status === 200) {
      const { tunnel, connectorKey } = this.#tunnel();
      await this.cluster.send("b", callRequest(tunnel, connectorKey));
    }
    await this.cluster.advance(HOLD_MS);
    expect([200, 204], "the service answers exactly 200 or 204").toContain(poll.status);
    expect(poll.headers["Cache-Control"]).toBe("no-store");
    if (poll.status === 204) expect(poll.text).toBe("");
    const outcome = this.#take(poll);
    expect(outcome).toBe("success");
    expect(headerLines(poll).some(([name]) => name.toLowerCase() === "x-tunnel-shard-token")).toBe(false);
    this.#tokenless = 0;
    this.emitted += 1;
  }

  #tunnel() {
    if (this.#made === undefined) throw new Error("the replay was not started");
    return this.#made;
  }

  async #move(): Promise<void> {
    const { tunnel } = this.#tunnel();
    const at = this.cluster.truth.tunnel(tunnel.id)?.placement.shard;
    this.cluster.move("a", tunnel.id, at === "s1" ? "s2" : "s1");
    await this.cluster.advance(100);
  }

  async #poll(): Promise<FakeExchange> {
    const { tunnel, agentKey } = this.#tunnel();
    const { token } = startPoll(this.routing);
    const headers = token === undefined ? CAPABLE : [...CAPABLE, "X-Tunnel-Shard-Token", token];
    const poll = await this.cluster.send(
      "e",
      pollRequest(tunnel, agentKey, { headers, query: `timeout_ms=${HOLD_MS}` }),
    );
    await this.cluster.advance(100);
    return poll;
  }

  #take(poll: FakeExchange): string {
    const head = { status: poll.status ?? 0, headerLines: headerLines(poll) };
    const ending: PollEnding = { kind: "answer", head, body: body(poll), bodyEnding: "complete" };
    const outcome = classifyPollAnswer(ending, false);
    this.routing = stepPollRouting(this.routing, startPoll(this.routing), outcome).state;
    return outcome.kind;
  }
}

function vectorCorrection(step: AnswerStep): { readonly revision: number } {
  const { error } = JSON.parse(Buffer.from(bytesOf(step.body)).toString("utf8")) as {
    error: { policy_revision: number };
  };
  return { revision: error.policy_revision };
}

function headerLines(poll: FakeExchange): (readonly [string, string])[] {
  return Object.entries(poll.headers).map(([name, value]) => [name, String(value)] as const);
}

function body(poll: FakeExchange): Uint8Array {
  return Buffer.concat(poll.chunks);
}

describe("the service gives what the sequences say a service gives", () => {
  const sequences = readVectors("sequences").sequences;

  for (const sequence of sequences.filter(({ overlapping }) => !overlapping)) {
    verifies(["R4", "R5", "R11", "R22", "R24"], `${sequence.id}: ${sequence.why}`, async () => {
      const replay = new ServiceReplay();
      await replay.start();
      for (const step of sequence.steps) if (step.do === "answer") await replay.play(step);
      const given = sequence.steps.filter(
        (step) => step.do === "answer" && step.expect.outcome === "success",
      );
      expect(replay.emitted).toBeGreaterThanOrEqual(given.length);
    });
  }
});
