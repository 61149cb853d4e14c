import { expect, test } from "vitest";
import { createNodeRuntime } from "@moor/runtime";
import { createWebRuntime } from "../src/web-runtime.ts";

test("random bytes are given once each, over refills of the pool and beyond its size", () => {
  const runtime = createNodeRuntime();
  const seen = new Set<string>();
  for (let round = 0; round < 1000; round += 1)
    seen.add(Buffer.from(runtime.randomBytes(12)).toString("hex"));
  expect(seen.size).toBe(1000);
  expect(runtime.randomBytes(10_000)).toHaveLength(10_000);
  expect(runtime.randomBytes(0)).toHaveLength(0);
  const large = runtime.randomBytes(4096);
  expect(large.filter((byte) => byte === 0).length).toBeLessThan(100);
});

test.each([
  ["Node", createNodeRuntime],
  ["the web", createWebRuntime],
])("no timer of %s fires early, by whatever part of a millisecond", async (_, create) => {
  const runtime = create();
  const wait = (delayMs: number) =>
    new Promise<number>((resolve) => {
      const startedAtMs = runtime.monotonicMs();
      runtime.schedule(delayMs, () => resolve(runtime.monotonicMs() - startedAtMs - delayMs));
    });
  for (let round = 0; round < 20; round += 1) {
    const late = await Promise.all(Array.from({ length: 20 }, (_each, at) => wait(0.3 + round / 7 + at / 3)));
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
  }
});

test("a delay beyond what a timer takes does not fire at once", async () => {
  const runtime = createNodeRuntime();
  let hasFired = false;
  const handle = runtime.schedule(2 ** 40, () => {
    hasFired = true;
  });
  await new Promise<void>((resolve) => void runtime.schedule(5, resolve));
  runtime.cancel(handle);
  expect(hasFired).toBe(false);
});
