import { defineConfig } from "vitest/config";

// Rings (see CONTRIBUTING.md): pure ones share one process; integration tests get processes of their own, and mostly
// wait for them: three files at a time keep two cores busy.
// A test's deadline is there for one that hangs; it must not judge how busy the machine is.
const pure = { isolate: false, pool: "threads", maxWorkers: 2, testTimeout: 60_000 } as const;

export default defineConfig({
  test: {
    projects: [
      { test: { ...pure, name: "unit", include: ["packages/*/test/**/*.test.ts"] } },
      { test: { ...pure, name: "vectors", include: ["test/conformance/**/*.test.ts"] } },
      { test: { ...pure, name: "sim", include: ["test/sim/**/*.test.ts"] } },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          pool: "forks",
          maxWorkers: 3,
          sequence: { groupOrder: 1 }, // after the pure rings, which have another number of workers
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          pool: "forks",
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
