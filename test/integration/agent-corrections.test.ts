// vectors/corrections.json answered to a real poll client on real sockets: what each answer makes of its next poll.

import { createControlPlane, createInstanceId, parseAgentOptions, PollClient } from "@moor/client";
import { createNodeRuntime, Secret } from "@moor/runtime";
import { startScriptedService, verifies, type ScriptedAnswer } from "@moor/testkit";
import { expect } from "vitest";
import { bytesOf, headerValueOf, readVectors, type VectorFiles } from "../conformance/vector-files.ts";
import { KEY, TUNNEL } from "./agent-kit.ts";

type CorrectionCase = VectorFiles["corrections"]["cases"][number];

const WISH = { limit: 1, waitMs: 1_000, deadlineMs: 30_000 };
const EMPTY: ScriptedAnswer = { kind: "answer", status: 204 };

/** The answer's bytes; a body that is cut announces more than comes. */
function wireOf({ status, headers, body, bodyIsCut }: CorrectionCase): ScriptedAnswer {
  const bytes = bytesOf(body);
  const lines = headers.map(([name, value]) => `${name}: ${headerValueOf(value)}\r\n`);
  const length = bytes.length + (bodyIsCut === true ? 9 : 0);
  const head = `HTTP/1.1 ${status} Scripted\r\n${lines.join("")}Content-Length: ${length}\r\n\r\n`;
  return {
    kind: "raw",
    bytes: Buffer.concat([Buffer.from(head, "latin1"), bytes]),
    keepOpen: bodyIsCut !== true,
  };
}

/** What a new client makes of a case: whether it took a correction, and the tokens its next poll carries. */
async function replay(vector: CorrectionCase): Promise<{ isCorrection: boolean; sends: readonly string[] }> {
  const service = await startScriptedService(() => (service.polls.length === 1 ? wireOf(vector) : EMPTY));
  const runtime = createNodeRuntime();
  const channels = [{ mcpUrl: "http://127.0.0.1:9/mcp" }];
  const settings = parseAgentOptions({
    endpoint: service.origin,
    tunnel: TUNNEL,
    key: new Secret(KEY),
    channels,
  });
  const wire = createControlPlane(settings, createInstanceId(runtime), runtime, undefined);
  const client = new PollClient(wire, runtime);
  const { signal } = new AbortController();
  const first = await client.poll(WISH, signal);
  await client.poll(WISH, signal);
  await wire.close();
  await service.close();
  expect(service.polls).toHaveLength(2);
  return {
    isCorrection: first.kind === "failed" && first.failure.kind === "correction",
    sends: service.polls[1]?.values("X-Tunnel-Shard-Token") ?? [],
  };
}

verifies(
  ["R6", "R7", "R10", "R12"],
  "a poll client on real sockets takes exactly the vectors' corrections, and its next poll carries their token",
  async () => {
    const { cases } = readVectors("corrections");
    const wrong: unknown[] = [];
    for (const vector of cases) {
      const { expect: expected } = vector;
      const isCorrection = expected.outcome === "correction";
      const sends = expected.token === undefined ? [] : [headerValueOf(expected.token)];
      const got = await replay(vector);
      if (JSON.stringify(got) !== JSON.stringify({ isCorrection, sends })) wrong.push([vector.id, got]);
    }
    expect(wrong).toEqual([]);
    expect(cases.length).toBeGreaterThanOrEqual(60);
  },
);
