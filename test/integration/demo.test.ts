// The demo, run as its reader runs it.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { listProcessGroup, postgresMissing, startProcess } from "@moor/testkit";

const DEMO = fileURLToPath(new URL("../../demo/demo.ts", import.meta.url));

test("the demo ends by itself with exit code 0, leaves nothing behind and shows no key", async () => {
  const demo = await startProcess({ args: [DEMO], label: "demo" });
  const end = await demo.ended;
  const output = demo.stdout.text();
  const words = output.replaceAll(/\s+/g, " ");
  expect(demo.stderr.text()).toBe("");
  expect(end).toEqual({ kind: "exited", code: 0 });
  expect(output.match(/progress \d\/4/g)).toHaveLength(4);
  expect(words).toContain("process groups are empty and their ports are free");
  if (postgresMissing() === undefined) {
    expect(words).toMatch(/40 moves: [1-9]\d+ calls, 0 failed, 0 run twice, 0 progress notes lost/);
  } else expect(words).toContain("Left out:");
  expect(words).toMatch(/[1-9]\d+ commands, [1-9]\d+ answered; .* The box acted [1-9]\d+ times, 0 twice/);
  expect(words).toContain(
    existsSync("/usr/bin/chromium") ? "in a browser page (Chromium)" : "in Node (there is no Chromium",
  );
  expect(output).not.toMatch(/moor_(agent|connector|operator|app)_/);
  expect(output.split("\n").filter((line) => line.length > 80)).toEqual([]);
  expect(await listProcessGroup(demo.pid)).toEqual([]);
}, 120_000);

test("with --stay the demo prints a configuration that works until Ctrl-C", async () => {
  const demo = await startProcess({ args: [DEMO, "--stay"], label: "demo" });
  await demo.stdout.waitFor("Ctrl-C ends the demo");
  const output = demo.stdout.text();
  const pasted = /^\{[\s\S]*?^\}/m.exec(output)?.[0] ?? "";
  const { mcpServers } = JSON.parse(pasted) as {
    mcpServers: Record<string, { url: string; headers: Record<string, string> }>;
  };
  const [server] = Object.values(mcpServers);
  const answer = await fetch(server?.url ?? "", {
    method: "POST",
    headers: {
      ...server?.headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  expect(await answer.text()).toContain("load_ship");
  demo.signal("SIGINT");
  expect(await demo.ended).toEqual({ kind: "exited", code: 0 });
});
