import { afterEach, expect, test, vi } from "vitest";
import type { MoorNode } from "@moor/server";
import { runNode } from "../src/run-node.ts";

afterEach(() => {
  process.exitCode = 0;
  vi.restoreAllMocks();
});

test("a node whose identity another process took is closed within its grace, says why, and ends with 1", async () => {
  const said: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
  const graces: unknown[] = [];
  const node: MoorNode = {
    id: "a",
    endpoint: "",
    operatorUrl: "",
    internalUrl: "",
    dataDir: "",
    replaced: Promise.resolve(),
    close: async (options) => void graces.push(options),
  };
  await runNode({ start: async () => node, announce: () => {}, graceMs: 5, isQuiet: true });
  expect(graces).toEqual([{ graceMs: 5 }]);
  expect(said.join("")).toContain("Another process runs under this node's id");
  expect(process.exitCode).toBe(1);
});
