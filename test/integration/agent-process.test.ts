// `moor agent` as a real process: how it starts, explains itself, keeps secrets and ends.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import {
  createTempDir,
  runMoor,
  startLedgerServer,
  startMoor,
  startScriptedService,
  verifies,
  type RunningProcess,
} from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import {
  command,
  commands,
  KEY,
  playPolls,
  startServiceWith,
  startTargetWith,
  toolCall,
  TUNNEL,
} from "./agent-kit.ts";

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const EMPTY = { kind: "answer", status: 204 } as const;

async function startAgentProcess(endpoint: string, args: readonly string[]): Promise<RunningProcess> {
  const agent = await startMoor(["agent", "--endpoint", endpoint, "--tunnel", TUNNEL, ...args], {
    env: { MOOR_AGENT_KEY: KEY },
  });
  onTestFinished(async () => {
    await agent.kill();
  });
  return agent;
}

/** A file in a folder that goes with the test. */
async function writeTempFile(name: string, text: string): Promise<string> {
  const folder = await createTempDir("agent");
  onTestFinished(() => folder.remove());
  const file = path.join(folder.path, name);
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

async function refusalOf(args: readonly string[], env: Readonly<Record<string, string | undefined>> = {}) {
  const run = await runMoor(["agent", ...args], { env: { MOOR_AGENT_KEY: KEY, ...env } });
  return { code: run.code, stderr: run.stderr, stdout: run.stdout };
}

verifies("T25", "SIGTERM ends the poll at once, lets a running command finish, and exits 0", async () => {
  let release: (() => void) | undefined;
  const target = await startTargetWith(
    () =>
      new Promise((resolve) => {
        release = () =>
          resolve({
            kind: "answer",
            status: 200,
            headers: [["Content-Type", "application/json"]],
            body: RESULT,
          });
      }),
  );
  const service = await startServiceWith(commands(command({ id: "a", jsonrpc: toolCall("1") })));
  const agent = await startAgentProcess(service.origin, ["--mcp", target.url]);
  await target.service.untilSeen("the call", (requests) => requests.length === 1);
  await service.untilSeen("the next poll", () => service.polls.length === 2);
  agent.signal("SIGTERM");
  await agent.stderr.waitFor("agent-stopping");
  release?.();
  expect(await agent.ended).toEqual({ kind: "exited", code: 0 });
  expect(service.responses).toHaveLength(1);
  expect(service.polls).toHaveLength(2);
  expect(agent.stdout.text()).toBe("");
  await agent.expectGroupEmpty();
});

verifies("T25", "what outlasts the grace is ended, and a second signal ends everything at once", async () => {
  const target = await startTargetWith(() => ({ kind: "hang" }));
  const hanging = commands(command({ id: "a", jsonrpc: toolCall("1") }));
  for (const [graceMs, code] of [
    ["100", 0],
    ["600000", 1],
  ] as const) {
    const service = await startServiceWith(hanging);
    const calls = target.service.requests.length;
    const agent = await startAgentProcess(service.origin, ["--mcp", target.url, "--grace-ms", graceMs]);
    await target.service.untilSeen("the call", (requests) => requests.length > calls);
    agent.signal("SIGTERM");
    await agent.stderr.waitFor("agent-stopping");
    if (code === 1) agent.signal("SIGTERM");
    expect(await agent.ended).toEqual({ kind: "exited", code });
    expect(service.responses).toHaveLength(0);
  }
});

verifies(
  ["T24", "T25"],
  "with --health it tells liveness and readiness, which follow polls and target",
  async () => {
    const target = await startLedgerServer();
    onTestFinished(() => target.close());
    let isFailing = false;
    const service = await startScriptedService(({ path: requestPath }) => {
      if (!requestPath.endsWith("/poll")) return EMPTY;
      if (isFailing) return { kind: "answer", status: 503 };
      return service.polls.length === 1 ? EMPTY : { kind: "hang" };
    });
    onTestFinished(() => service.close());
    const agent = await startAgentProcess(service.origin, ["--mcp", target.url, "--health", "127.0.0.1:0"]);
    await agent.stderr.waitFor(/^connected: tunnel tunnel_\w+ at http:\/\/127\.0\.0\.1:\d+$/);
    const listening = await agent.stderr.waitFor("health-listening");
    const { port } = JSON.parse(listening) as { port: number };
    const page = async (name: string) => {
      const answer = await fetch(`http://127.0.0.1:${port}${name}`);
      return [answer.status, await answer.json()];
    };
    await expect.poll(() => page("/readyz"), { timeout: 20_000 }).toEqual([200, { ready: true }]);
    expect(await page("/healthz")).toEqual([200, { status: "ok" }]);
    expect(await page("/other")).toEqual([404, { error: "not_found" }]);
    isFailing = true;
    service.refuseConnections();
    await service.close();
    await expect
      .poll(() => page("/readyz"), { timeout: 20_000 })
      .toEqual([503, { ready: false, reason: "poll-failed" }]);
    expect(await page("/healthz")).toEqual([200, { status: "ok" }]);
  },
);

verifies("T25", "a refused key is explained in words, without being shown", async () => {
  const service = await startScriptedService(() => ({
    kind: "answer",
    status: 401,
    body: '{"error":{"code":"unauthorized","message":"text-marker"}}',
  }));
  onTestFinished(() => service.close());
  const agent = await startAgentProcess(service.origin, ["--mcp", "http://127.0.0.1:1/mcp"]);
  await agent.stderr.waitFor("refuses the key (401)");
  await agent.stop();
  expect(agent.stderr.text()).not.toMatch(/marker|planted/);
});

verifies(
  ["R8", "T25"],
  "--log-http-raw-unsafe dumps responses and target exchanges, masked, and never a poll",
  async () => {
    const target = await startTargetWith(() => ({ kind: "answer", status: 200, body: RESULT }));
    const play = playPolls([
      commands(
        command({ id: "a", token: "token-marker", jsonrpc: toolCall("1", '{"x":"poll-and-target"}') }),
      ),
      {
        kind: "answer",
        status: 409,
        headers: [["X-Tunnel-Shard-Token", "polling-marker"]],
        body: "poll-body-marker",
      },
    ]);
    const service = await startScriptedService(({ path: requestPath }) => play(requestPath));
    onTestFinished(() => service.close());
    const headersText = "# for the server\nAuthorization: Bearer static-marker\n\nX-Plain: shown\n";
    const headersFile = await writeTempFile("headers", headersText);
    const args = [
      "--mcp",
      target.url,
      "--mcp-headers-file",
      headersFile,
      "--log-http-raw-unsafe",
      "--log-level",
      "debug",
    ];
    const agent = await startAgentProcess(service.origin, args);
    await agent.stderr.waitFor("command-ended");
    await agent.stderr.waitFor('"event":"poll-failed"');
    await agent.stop();
    const text = agent.stderr.text();
    expect(text).toContain("target > POST /mcp");
    expect(text).toContain("target > X-Plain: shown");
    expect(text).toContain(`service > POST /v1/tunnels/${TUNNEL}/response`);
    expect(text).toContain("[secret]");
    expect(text).not.toContain("/poll");
    expect(text).not.toMatch(/(token|polling|poll-body|static)-marker/);
    expect(text).not.toContain(KEY);
    expect(target.service.requests[0]?.values("Authorization")).toEqual(["Bearer static-marker"]);
  },
);

verifies("T25", "a key from a file works, and its file's last newline is no part of it", async () => {
  const keyFile = await writeTempFile("key", `${KEY}\n`);
  const service = await startServiceWith(EMPTY);
  const agent = await startMoor(
    [
      "agent",
      "--endpoint",
      service.origin,
      "--tunnel",
      TUNNEL,
      "--key-file",
      keyFile,
      "--mcp",
      "http://127.0.0.1:1/",
    ],
    { env: { MOOR_AGENT_KEY: undefined } },
  );
  onTestFinished(async () => void (await agent.kill()));
  await agent.stderr.waitFor(/^connected/);
  expect(service.polls[0]?.values("Authorization")).toEqual([`Bearer ${KEY}`]);
  expect(await agent.stop()).toEqual({ kind: "exited", code: 0 });
});

verifies(
  "T16",
  "bad settings end with code 2 and one line that says what was wrong, got and expected",
  async () => {
    const good = [
      "--endpoint",
      "https://moor.example",
      "--tunnel",
      TUNNEL,
      "--mcp",
      "http://127.0.0.1:1/mcp",
    ];
    const without = (option: string) => {
      const at = good.indexOf(option);
      return [...good.slice(0, at), ...good.slice(at + 2)];
    };
    const cases: [args: readonly string[], told: string][] = [
      [without("--endpoint"), "--endpoint: got nothing"],
      [without("--mcp"), "--mcp: got 0 MCP servers"],
      [[...without("--endpoint"), "--endpoint", "http://moor.example"], "--endpoint: got plain http"],
      [[...without("--tunnel"), "--tunnel", KEY], "--tunnel: got a text of"],
      [[...good, "--concurrency", "0"], "--concurrency: got"],
      [[...good, "--mcp-channel", "nourl"], "--mcp-channel: got"],
      [[...good, "--key-file", "/does/not/exist"], "--key-file: got"],
      [[...good, "--health", "nowhere"], "--health: got"],
      [[...good, "--no-such-flag"], "unknown option"],
    ];
    const runs = await Promise.all(cases.map(([args]) => refusalOf(args)));
    for (const [index, { code, stderr, stdout }] of runs.entries()) {
      const told = cases[index]?.[1] ?? "";
      expect([told, code, stdout]).toEqual([told, 2, ""]);
      expect(stderr).toContain(told);
      expect(stderr).not.toContain(KEY);
    }
    const keyless = await refusalOf(good, { MOOR_AGENT_KEY: undefined });
    expect([keyless.code, keyless.stderr]).toEqual([2, expect.stringContaining("MOOR_AGENT_KEY")]);
  },
);
