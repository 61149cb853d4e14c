// The judge of a fleet: what it must never overlook.

import { expect, test } from "vitest";
import {
  encodeCall,
  faultsOf,
  judgeFleet,
  NO_FAULTS,
  readAnswer,
  type CallEnding,
  type CallForm,
  type CallRecord,
} from "@moor/testkit";

const ANSWERED: CallEnding = { kind: "answered", progress: [] };

function record(name: string, ending: CallEnding, form: CallForm = "json"): CallRecord {
  return { name, tunnel: "t1", form, latencyMs: 10, ending };
}

function final(name: string, text = name): string {
  const result = { content: [{ type: "text", text }] };
  return JSON.stringify({ jsonrpc: "2.0", id: name, result });
}

function progress(progressToken: string, value: number): string {
  return JSON.stringify({ method: "notifications/progress", params: { progressToken, progress: value } });
}

function stream(...messages: readonly string[]): string {
  return messages.map((message) => `data: ${message}\n\n`).join("");
}

test("calls that were answered and executed once, with every notification, have no fault", () => {
  const records = [
    record("a", ANSWERED),
    record("b", { kind: "answered", progress: [1, 2, 3] }, "stream"),
    record("c", { kind: "answered", progress: [1, 2, 3] }, "sdk"),
  ];
  const executions = ["a", "b", "c", "of-another-run"].map((call) => ({ call, tunnel: "t1" }));
  const verdict = judgeFleet(records, executions, 3);
  expect(faultsOf(verdict)).toEqual(NO_FAULTS);
  expect(verdict).toMatchObject({ calls: 3, answered: 3, failures: [] });
});

test("every kind of fault is counted in its own place", () => {
  const records = [
    record("twice", ANSWERED),
    record("unexecuted", ANSWERED),
    record("elsewhere", ANSWERED),
    record("refused", { kind: "refused", status: 503, code: "tunnel_client_not_connected" }),
    record("refused-too", { kind: "refused", status: 503, code: "tunnel_client_not_connected" }),
    record("foreign", { kind: "foreign" }),
    record("broken", { kind: "broken", fault: "ECONNRESET" }),
    record("short", { kind: "answered", progress: [1, 3] }, "stream"),
    record("swapped", { kind: "answered", progress: [2, 1, 3] }, "stream"),
  ];
  const executions = [
    ...["twice", "twice", "short", "swapped"].map((call) => ({ call, tunnel: "t1" })),
    { call: "elsewhere", tunnel: "t2" },
  ];
  const verdict = judgeFleet(records, executions, 3);
  expect(faultsOf(verdict)).toEqual({
    failed: 4,
    executedTwice: 1,
    answeredUnexecuted: 1,
    executedElsewhere: 1,
    lostNotifications: 2 + 2,
  });
  expect(verdict.failures).toEqual([
    {
      kind: "json: 503 tunnel_client_not_connected",
      count: 2,
      examples: ["refused", "refused-too"],
    },
    { kind: "json: another call's answer", count: 1, examples: ["foreign"] },
    { kind: "json: ECONNRESET", count: 1, examples: ["broken"] },
  ]);
});

test("an answer is read for what it is, in both forms", () => {
  const json = "application/json";
  const events = "text/event-stream";
  expect(readAnswer("a", 200, json, final("a"))).toEqual(ANSWERED);
  expect(readAnswer("a", 200, events, stream(progress("a", 1), progress("a", 2), final("a")))).toEqual({
    kind: "answered",
    progress: [1, 2],
  });
  expect(readAnswer("a", 200, events, `: waiting\n\n${stream(final("a"))}`)).toEqual(ANSWERED);
  expect(readAnswer("a", 200, json, final("b"))).toEqual({ kind: "foreign" });
  expect(readAnswer("a", 200, json, final("a", "b"))).toEqual({ kind: "foreign" });
  expect(readAnswer("a", 200, events, stream(progress("b", 1), final("a")))).toEqual({ kind: "foreign" });
  expect(readAnswer("a", 200, events, stream(progress("a", 1)))).toEqual({ kind: "foreign" });
  expect(readAnswer("a", 503, json, '{"error":{"code":"node_draining"}}')).toEqual({
    kind: "refused",
    status: 503,
    code: "node_draining",
  });
  const inStream = '{"id":"a","error":{"code":-32603,"data":{"code":"command_outcome_unknown"}}}';
  expect(readAnswer("a", 200, events, stream(inStream))).toEqual({
    kind: "refused",
    status: 200,
    code: "command_outcome_unknown",
  });
});

test("only a call that wants notifications carries a progress token", () => {
  expect(JSON.parse(encodeCall("a", "json"))).toMatchObject({
    id: "a",
    params: { arguments: { call: "a" } },
  });
  expect(encodeCall("a", "json")).not.toContain("progressToken");
  expect(JSON.parse(encodeCall("a", "stream"))).toMatchObject({ params: { _meta: { progressToken: "a" } } });
});
