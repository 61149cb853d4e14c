// Who tells an app of a sleep or a new network, on pages and on what is no page (L14).

import { verifies } from "@moor/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { createWakeSourceOfPage, type WakeKind } from "../../src/link/wake-source.ts";

verifies(
  "L14",
  "a page tells when it is shown and when it is online again, until it is no longer watched",
  () => {
    const document = Object.assign(new EventTarget(), { visibilityState: "hidden" });
    const window = new EventTarget();
    vi.stubGlobal("document", document);
    vi.stubGlobal("window", window);
    onTestFinished(() => void vi.unstubAllGlobals());
    const told: WakeKind[] = [];
    const unwatch = createWakeSourceOfPage().watch((kind) => told.push(kind));
    document.dispatchEvent(new Event("visibilitychange"));
    expect(told).toEqual([]);
    document.visibilityState = "visible";
    document.dispatchEvent(new Event("visibilitychange"));
    window.dispatchEvent(new Event("online"));
    expect(told).toEqual(["woke", "network-changed"]);
    unwatch();
    window.dispatchEvent(new Event("online"));
    expect(told).toHaveLength(2);
  },
);

test("where nothing tells of events, in Node or React Native, nothing is told and nothing fails", () => {
  for (const window of [undefined, {}]) {
    vi.stubGlobal("window", window);
    onTestFinished(() => void vi.unstubAllGlobals());
    const unwatch = createWakeSourceOfPage().watch(() => {});
    expect(unwatch).not.toThrow();
  }
});
