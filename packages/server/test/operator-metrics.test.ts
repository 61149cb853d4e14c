// Metrics: every series is there from the start, and labels are closed.

import { expect, test } from "vitest";
import { CALL_OUTCOMES, createMetrics, RESPONSE_OUTCOMES, RESPONSE_TYPES } from "../src/operator/metrics.ts";

test("every series exists with 0 before anything happens", async () => {
  const { registry } = createMetrics({ withProcess: false });
  const text = await registry.metrics();
  for (const outcome of CALL_OUTCOMES)
    expect(text).toContain(`moor_calls_ended_total{outcome="${outcome}"} 0\n`);
  expect(text.match(/^moor_responses_total\{/gm)).toHaveLength(
    RESPONSE_TYPES.length * RESPONSE_OUTCOMES.length,
  );
});

test("what is counted shows, and a label outside its union is not taken", async () => {
  const metrics = createMetrics({ withProcess: false });
  metrics.callsEnded.inc("answered");
  metrics.callsEnded.inc("answered");
  metrics.callsEnded.inc("tunnel_0123" as "answered");
  metrics.responses.inc("jsonrpc_response", "accepted");
  metrics.pollsWaiting.inc();
  metrics.callDurationSeconds.observe(0.2);
  const text = await metrics.registry.metrics();
  expect(text).toContain('moor_calls_ended_total{outcome="answered"} 2\n');
  expect(text).toContain('moor_responses_total{type="jsonrpc_response",outcome="accepted"} 1\n');
  expect(text).toContain("moor_polls_waiting 1\n");
  expect(text).toContain('moor_call_duration_seconds_bucket{le="0.25"} 1\n');
  expect(text).not.toContain("tunnel_0123");
});

test("two nodes of one process count apart", async () => {
  const [first, second] = [createMetrics({ withProcess: false }), createMetrics({ withProcess: false })];
  first.commandsHandedOut.inc(3);
  expect(await second.registry.metrics()).toContain("moor_commands_handed_out_total 0\n");
});

test("the process's own metrics carry the prefix", async () => {
  expect(await createMetrics().registry.metrics()).toMatch(/^moor_process_cpu_seconds_total /m);
});
