// vectors/sequences.json replayed on real sockets: by the poll client (overlapping polls and cancellations too) and by
// the whole agent (delays and readiness too). No redirect is followed and no second request is made for a poll.

import {
  createAgent,
  createControlPlane,
  createInstanceId,
  parseAgentOptions,
  PollClient,
  type Agent,
  type CollectedAnswer,
  type PollResult,
} from "@moor/client";
import { createNodeRuntime, createSilentLogger, Secret, type Runtime } from "@moor/runtime";
import {
  startScriptedService,
  until,
  verifies,
  within,
  type ScriptedAnswer,
  type ScriptedRequest,
} from "@moor/testkit";
import { describe, expect } from "vitest";
import { readVectors, type Sequence } from "../conformance/vector-files.ts";
import { KEY, TUNNEL } from "./agent-kit.ts";
import { endsBeforeService, wireOf, type EndingStep } from "./agent-sequence-steps.ts";

/** Longest configurable wait: the deadline above it (+ 5 s) is told from every sleep (60 s at most). */
const POLL_WAIT_MS = 300_000;
const POLL_DEADLINE_MS = 305_000;

/** A runtime whose poll deadlines, and the sleeps a test expects, fire when the test says so. */
function scriptedTime(random: () => number) {
  const deadlines: (() => void)[] = [];
  const sleeps: { delayMs: number; wake: () => void }[] = [];
  let onSleep: (() => void) | undefined;
  const real = createNodeRuntime();
  const runtime: Runtime = {
    ...real,
    random,
    schedule: (delayMs, run) => {
      if (delayMs === POLL_DEADLINE_MS) deadlines.push(run);
      else if (onSleep === undefined) return real.schedule(delayMs, run);
      else {
        sleeps.push({ delayMs, wake: run });
        onSleep();
        onSleep = undefined;
      }
      return { timer: {} };
    },
    cancel: (handle) => {
      if (handle !== undefined && "refresh" in handle.timer) real.cancel(handle);
    },
  };
  /** The next timer is a sleep of the poll loop; `whenAsleep` hears of it. */
  const expectSleep = (whenAsleep: () => void) => void (onSleep = whenAsleep);
  return { runtime, deadlines, sleeps, expectSleep };
}

/** A service whose n-th poll waits until `end(n, …)`. */
async function startPollService() {
  const answers = new Map<number, (answer: ScriptedAnswer) => void>();
  let seen = 0;
  const service = await startScriptedService(({ path }) => {
    if (!path.endsWith("/poll")) return { kind: "answer", status: 200, body: '{"status":"ok"}' };
    seen += 1;
    const position = seen;
    return new Promise((resolve) => answers.set(position, resolve));
  });
  return { service, end: (position: number, answer: ScriptedAnswer) => answers.get(position)?.(answer) };
}

function options(endpoint: string) {
  const channels = [{ mcpUrl: "http://127.0.0.1:9/mcp" }];
  return { endpoint, tunnel: TUNNEL, key: new Secret(KEY), channels, pollWaitMs: POLL_WAIT_MS };
}

/** The polling token of a request: null for no line; two lines are a failure (R10). */
function sentToken(request: ScriptedRequest | undefined): string | null {
  const values = request?.values("X-Tunnel-Shard-Token") ?? [];
  expect(values.length).toBeLessThan(2);
  return values[0] ?? null;
}

function outcomeOf(result: PollResult): string {
  if (result.kind !== "failed") return result.kind;
  return result.failure.kind === "malformed-correction" ? "ordinary-error" : result.failure.kind;
}

interface RunningPoll {
  readonly result: Promise<PollResult>;
  readonly cancel: AbortController;
  end(step: EndingStep): void;
}

async function replayWithPollClient(sequence: Sequence): Promise<void> {
  const { service, end } = await startPollService();
  const { runtime, deadlines } = scriptedTime(() => 0.5);
  const settings = parseAgentOptions(options(service.origin));
  const wire = createControlPlane(settings, createInstanceId(runtime), runtime, undefined);
  // Name resolution, TLS and refused connects are played without a socket, each at its own step.
  let local: { token: string | null; fail: (answer: CollectedAnswer) => void } | undefined;
  let isNextLocal = false;
  const pollLocally = (token: string | undefined) =>
    new Promise<CollectedAnswer>((fail) => (local = { token: token ?? null, fail }));
  const client = new PollClient(
    { ...wire, poll: (wish, signal) => (isNextLocal ? pollLocally(wish.token) : wire.poll(wish, signal)) },
    runtime,
  );
  const start = async (poll: number): Promise<{ running: RunningPoll; sent: string | null }> => {
    isNextLocal = endsBeforeService(endingOf(sequence, poll));
    const cancel = new AbortController();
    const wish = { limit: 10, waitMs: POLL_WAIT_MS, deadlineMs: POLL_DEADLINE_MS };
    const position = service.polls.length + 1;
    const result = client.poll(wish, cancel.signal);
    if (isNextLocal) {
      const { token = null, fail } = local ?? {};
      const endLocally = () => fail?.({ kind: "fault", category: "dns", wasWritten: false });
      return { running: { result, cancel, end: endLocally }, sent: token };
    }
    await service.untilSeen(`poll ${poll}`, () => service.polls.length >= position);
    const running = { result, cancel, end: (step: EndingStep) => end(position, wireOf(step, false)) };
    return { running, sent: sentToken(service.polls[position - 1]) };
  };

  const polls = new Map<number, RunningPoll>();
  for (const step of sequence.steps) {
    if (step.do === "start") {
      const { running, sent } = await start(step.poll);
      expect([step.poll, sent]).toEqual([step.poll, step.sends]);
      polls.set(step.poll, running);
      continue;
    }
    const poll = polls.get(step.poll);
    if (poll === undefined) throw new Error(`poll ${step.poll} was not started`);
    poll.end(step);
    if (step.do === "cancel") poll.cancel.abort();
    if (step.do === "fault" && step.fault === "deadline") deadlines.at(-1)?.();
    const result = await within(poll.result, `the end of poll ${step.poll}`);
    expect([step.poll, outcomeOf(result)]).toEqual([step.poll, step.expect.outcome]);
    if (result.kind === "success") expect(result.commands).toHaveLength(step.expect.commands ?? 0);
  }
  expect(service.requests).toHaveLength(reachingPolls(sequence));
  await wire.close();
  await service.close();
}

/** How many polls of a sequence reach the service. */
function reachingPolls(sequence: Sequence): number {
  return sequence.steps.filter(
    (step) => step.do === "start" && !endsBeforeService(endingOf(sequence, step.poll)),
  ).length;
}

function endingOf(sequence: Sequence, poll: number): EndingStep | undefined {
  return sequence.steps.find((step): step is EndingStep => step.do !== "start" && step.poll === poll);
}

async function replayWithAgent(sequence: Sequence): Promise<void> {
  const { service, end } = await startPollService();
  let random = 0.5;
  const { runtime, deadlines, sleeps, expectSleep } = scriptedTime(() => random);
  const delays: number[] = [];
  let onAsleep = () => {};
  const agent = createAgent(options(service.origin), {
    runtime,
    logger: createSilentLogger(),
    onPollFailed: (_failure, delayMs) => {
      delays.push(delayMs);
      expectSleep(onAsleep);
    },
  });
  const isRefused = (poll: number) => endsBeforeService(endingOf(sequence, poll));
  const listenFor = async (poll: number) => {
    if (isRefused(poll) && service.isListening) service.refuseConnections();
    if (!isRefused(poll) && !service.isListening) await service.listenAgain();
  };
  let reached = 0;
  let wake: (() => void) | undefined;
  await listenFor(1);
  agent.start();
  for (const step of sequence.steps) {
    if (step.do === "start") {
      random = endingOf(sequence, step.poll)?.random ?? random;
      await listenFor(step.poll);
      wake?.();
      wake = undefined;
      if (isRefused(step.poll)) continue;
      reached += 1;
      await service.untilSeen(`poll ${step.poll}`, () => service.polls.length >= reached);
      expect([step.poll, sentToken(service.polls.at(-1))]).toEqual([step.poll, step.sends]);
      continue;
    }
    // After a success the agent polls at once: what refuses that poll has to be there before.
    const asleep = new Promise<void>((resolve) => (onAsleep = resolve));
    const isNextRefused = isRefused(step.poll + 1);
    if (isNextRefused && service.isListening) service.refuseConnections();
    if (!isRefused(step.poll)) end(reached, wireOf(step, isNextRefused));
    if (step.do === "fault" && step.fault === "deadline") deadlines.at(-1)?.();
    if (step.expect.delayMs === null) {
      if (!isNextRefused) await until(() => isPollReady(agent), `poll ${step.poll} to succeed`);
      continue;
    }
    if (sleeps.length === 0) await within(asleep, `poll ${step.poll} to fail`);
    expect([step.poll, delays.at(-1)]).toEqual([step.poll, step.expect.delayMs]);
    expect(sleeps.map(({ delayMs }) => delayMs)).toEqual([step.expect.delayMs]);
    wake = sleeps.pop()?.wake;
    expect(isPollReady(agent)).toBe(false);
  }
  expect(service.polls.length - reachingPolls(sequence)).toBeLessThan(2);
  await agent.stop(0);
  await service.close();
}

/** Readiness as far as polling goes: no target is probed here. */
function isPollReady(agent: Agent): boolean {
  const { readiness } = agent.status();
  return readiness.isReady || readiness.reason === "target-unknown";
}

describe("vectors/sequences.json on real sockets", () => {
  for (const sequence of readVectors("sequences").sequences) {
    verifies(
      ["R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R18"],
      `the poll client replays ${sequence.id}`,
      () => replayWithPollClient(sequence),
    );
  }
  for (const sequence of readVectors("sequences").sequences) {
    if (sequence.overlapping || sequence.steps.some((step) => step.do === "cancel")) continue;
    verifies(["R17", "R18", "T17"], `the agent replays ${sequence.id}`, () => replayWithAgent(sequence));
  }
});
