// What an agent asks of its service while everything about its tunnel goes wrong.

import { createNodeRuntime } from "@moor/runtime";
import { verifies, type ScriptedAnswer } from "@moor/testkit";
import { expect } from "vitest";
import { startAgent, startServiceWith, TUNNEL } from "./agent-kit.ts";

const correction = (revision: number): ScriptedAnswer => ({
  kind: "answer",
  status: 409,
  headers: [["X-Tunnel-Shard-Token", `token-${revision}`]],
  body: `{"error":{"code":"wrong_cluster","policy_revision":${revision}}}`,
});
const failure = (status: number, code: string): ScriptedAnswer => ({
  kind: "answer",
  status,
  headers: [["Location", "/v1/tunnels"]],
  body: `{"error":{"code":"${code}","message":"create it anew"}}`,
});

/** Every way in which a tunnel can look lost, then a poll that works. */
const TROUBLE: readonly ScriptedAnswer[] = [
  correction(1),
  failure(404, "tunnel_not_found"),
  failure(410, "gone"),
  failure(401, "unauthorized"),
  failure(307, "moved"),
  failure(503, "tunnel_transport_unavailable"),
  { kind: "reset" },
  correction(2),
  correction(3),
  correction(4),
  { kind: "answer", status: 204 },
];

verifies("R19", "recovery asks for nothing but the next poll of the very same tunnel", async () => {
  const service = await startServiceWith(...TROUBLE);
  // With U = 0 every delay of R17 is its shortest, 200 ms.
  startAgent({ endpoint: service.origin }, { runtime: { ...createNodeRuntime(), random: () => 0 } });
  await service.untilSeen("the poll after the trouble", (requests) => requests.length > TROUBLE.length);
  const asked = new Set(service.requests.map(({ method, path }) => `${method} ${path.split("?")[0]}`));
  expect([...asked]).toEqual([`GET /v1/tunnels/${TUNNEL}/poll`]);
});
