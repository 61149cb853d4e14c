import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { PROBE_INTERVAL_MS, TargetProber } from "../src/target-prober.ts";
import { FakeTarget } from "./fake-target.ts";

/** A target whose probes end as `isAnswering` says. */
class ProbedTarget extends FakeTarget {
  readonly runtime: VirtualRuntime;
  isAnswering = true;
  probes = 0;
  answeredAtMs: number | undefined;

  constructor(runtime: VirtualRuntime) {
    super();
    this.runtime = runtime;
  }

  override probe(): Promise<boolean> {
    this.probes += 1;
    if (this.isAnswering) this.answeredAtMs = this.runtime.monotonicMs();
    return Promise.resolve(this.isAnswering);
  }

  override lastAnswerAtMs(): number | undefined {
    return this.answeredAtMs;
  }
}

function setUp() {
  const runtime = new VirtualRuntime();
  const target = new ProbedTarget(runtime);
  const prober = new TargetProber(runtime, [target]);
  const stopping = new AbortController();
  return { runtime, target, prober, stopping };
}

verifies("T24", "a target is unknown before its first probe, then what its newest probe says", async () => {
  const { runtime, target, prober, stopping } = setUp();
  expect(prober.results()).toEqual(["unknown"]);
  void prober.run(stopping.signal);
  await runtime.advanceAsync(1);
  expect(prober.results()).toEqual(["answered"]);
  target.isAnswering = false;
  await runtime.advanceAsync(PROBE_INTERVAL_MS);
  expect(prober.results()).toEqual(["failed"]);
  target.isAnswering = true;
  await runtime.advanceAsync(PROBE_INTERVAL_MS);
  expect(prober.results()).toEqual(["answered"]);
  stopping.abort();
  await runtime.advanceAsync(PROBE_INTERVAL_MS);
  expect(runtime.pendingCount).toBe(0);
});

verifies("T24", "any answer to a call counts, and saves the probe", async () => {
  const { runtime, target, prober, stopping } = setUp();
  target.isAnswering = false;
  void prober.run(stopping.signal);
  await runtime.advanceAsync(PROBE_INTERVAL_MS - 1);
  expect(prober.results()).toEqual(["failed"]);
  target.answeredAtMs = runtime.monotonicMs();
  expect(prober.results()).toEqual(["answered"]);
  await runtime.advanceAsync(1);
  expect(target.probes).toBe(1);
});
