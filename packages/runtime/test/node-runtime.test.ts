import { expect, test } from "vitest";
import { createNodeRuntime } from "@moor/runtime";

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
