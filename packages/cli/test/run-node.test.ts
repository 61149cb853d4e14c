// How a node in this process ends: by signals, by an operator's order, or because another process took its identity.

import { afterEach, expect, test, vi } from "vitest";
import type { MoorNode } from "@moor/server";
import { verifies } from "@moor/testkit";
import { runNode } from "../src/run-node.ts";

afterEach(() => {
  process.exitCode = 0;
  vi.restoreAllMocks();
  vi.useRealTimers();
});

type CloseOrder = NonNullable<Parameters<MoorNode["close"]>[0]>;

/** Runs a node; gives what it was closed with, and what was said. */
function run(parts: Partial<Pick<MoorNode, "replaced" | "ordered" | "close">>) {
  const said: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
  const exits: unknown[] = [];
  vi.spyOn(process, "exit").mockImplementation((code) => exits.push(code) as never);
  const orders: CloseOrder[] = [];
  const never = new Promise<void>(() => {});
  const node: MoorNode = {
    id: "a",
    endpoint: "",
    operatorUrl: "",
    internalUrl: "",
    dataDir: "",
    replaced: parts.replaced ?? never,
    ordered: parts.ordered ?? never,
    close: async (order = {}) => {
      orders.push(order);
      await parts.close?.(order);
    },
  };
  const served = Promise.withResolvers<void>();
  const ended = runNode({
    start: async () => node,
    announce: () => served.resolve(),
    graceMs: 5,
    isQuiet: false,
  });
  return { ended, served: served.promise, orders, exits, said: () => said.join("") };
}

test("a node whose identity another process took is closed within its grace, says why, and ends with 1", async () => {
  const { ended, orders, said } = run({ replaced: Promise.resolve() });
  await ended;
  expect(orders).toMatchObject([{ graceMs: 5, isTakenOver: false }]);
  expect(said()).toContain("Another process runs under this node's id");
  expect(process.exitCode).toBe(1);
});

verifies("L24", "an operator's order ends it as a signal does, with 0", async () => {
  const { ended, orders, said } = run({ ordered: Promise.resolve() });
  await ended;
  expect(orders).toMatchObject([{ graceMs: 5, isTakenOver: false }]);
  expect(said()).toContain("as an operator has ordered");
  expect(process.exitCode).toBe(0);
});

verifies("L24", "a process that has taken over the port says so by its signal", async () => {
  const { ended, served, orders } = run({});
  await served;
  process.emit("SIGUSR2", "SIGUSR2");
  await ended;
  expect(orders).toMatchObject([{ isTakenOver: true }]);
  expect(process.exitCode).toBe(0);
});

verifies(
  "L24",
  "a second process that would take over hurries nobody: calls under way keep their time",
  async () => {
    const closed = Promise.withResolvers<void>();
    const { ended, served, orders, exits } = run({ close: () => closed.promise });
    await served;
    process.emit("SIGUSR2", "SIGUSR2");
    await vi.waitFor(() => expect(orders.length).toBe(1));
    for (let more = 0; more < 3; more += 1) process.emit("SIGUSR2", "SIGUSR2");
    expect([orders[0]?.hurry?.aborted, exits]).toEqual([false, []]);
    vi.useFakeTimers();
    process.emit("SIGTERM", "SIGTERM");
    expect(orders[0]?.hurry?.aborted).toBe(true);
    closed.resolve();
    await ended;
    expect(process.exitCode).toBe(1);
  },
);

test("a second signal hurries the node, which then ends with 1; a third ends the process at once", async () => {
  const closed = Promise.withResolvers<void>();
  const { ended, served, orders, exits } = run({ close: () => closed.promise });
  await served;
  process.emit("SIGTERM", "SIGTERM");
  await vi.waitFor(() => expect(orders.length).toBe(1));
  expect(orders[0]?.hurry?.aborted).toBe(false);
  vi.useFakeTimers();
  process.emit("SIGTERM", "SIGTERM");
  expect(orders[0]?.hurry?.aborted).toBe(true);
  expect(exits).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(exits).toEqual([1]);
  process.emit("SIGTERM", "SIGTERM");
  expect(exits).toEqual([1, 1]);
  closed.resolve();
  await ended;
  expect(process.exitCode).toBe(1);
});
