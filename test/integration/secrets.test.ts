// Planted markers: every secret and every payload of a run is looked for where it must not be.

import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import {
  createTempDir,
  createTunnel,
  runMoor,
  startLedgerServer,
  startMoorAgent,
  startMoorDev,
  until,
  verifies,
  type CreatedTunnel,
  type LedgerServer,
  type MoorDev,
  type RunningProcess,
  type TempDir,
} from "@moor/testkit";

const PLANTED = {
  staticHeader: "planted-static-header",
  cookie: "planted-cookie",
  authorization: "planted-authorization",
  argument: "planted-argument",
  result: "planted-result",
  sessionId: "planted-session-id",
  query: "planted-query",
};

describe("secrets", () => {
  let node: MoorDev;
  let ledger: LedgerServer;
  let folder: TempDir;
  let tunnel: CreatedTunnel;
  let keyed: CreatedTunnel;
  let agent: RunningProcess;
  let operatorAnswers = "";
  let callerErrors = "";
  let commandLines = "";
  const commandTokens: string[] = [];

  beforeAll(async () => {
    folder = await createTempDir("secrets");
    const headersFile = path.join(folder.path, "headers");
    await writeFile(headersFile, `X-Api-Key: ${PLANTED.staticHeader}\n`, { mode: 0o600 });
    node = await startMoorDev({ args: ["--log-level", "debug"] });
    ledger = await startLedgerServer();
    ledger.answerWith((entry) =>
      entry.method === "tools/call"
        ? { kind: "result", rawResult: `{"content":"${PLANTED.result}"}` }
        : entry.method === "fail"
          ? { kind: "raw", status: 500, headers: { "set-cookie": PLANTED.cookie }, body: PLANTED.result }
          : undefined,
    );
    tunnel = await createTunnel(node, ["--access", "passthrough"]);
    agent = await startMoorAgent({
      endpoint: node.endpoint,
      tunnel,
      mcp: `${ledger.url}?token=${PLANTED.query}`,
      args: ["--log-level", "debug", "--mcp-headers-file", headersFile],
    });
    for (const method of ["tools/call", "fail"]) {
      const answer = await fetch(tunnel.connectorUrl, {
        method: "POST",
        headers: {
          authorization: `Bearer ${PLANTED.authorization}`,
          cookie: `c=${PLANTED.cookie}`,
          "mcp-session-id": PLANTED.sessionId,
          "content-type": "application/json",
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"arguments":{"x":"${PLANTED.argument}"}}}`,
      });
      if (method === "tools/call") expect(await answer.text()).toContain(PLANTED.result);
      else callerErrors += await answer.text();
    }
    keyed = await createTunnel(node);
    commandTokens.push(await answerOneCallByHand(node, keyed));
    for (const key of [tunnel.agentKey, keyed.agentKey, node.operatorToken, "moor_agent_nonsense"]) {
      const refused = await fetch(keyed.connectorUrl, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: "{}",
      });
      expect(refused.status).toBe(401);
      callerErrors += await refused.text();
    }
    const authorization = `Bearer ${node.operatorToken}`;
    for (const route of ["/v1/tunnels", `/v1/tunnels/${tunnel.id}`, "/v1/keys", "/metrics", "/v1/nothing"]) {
      operatorAnswers += await (await fetch(node.operatorUrl + route, { headers: { authorization } })).text();
    }
    for (const command of [
      ["tunnel", "list"],
      ["tunnel", "show", tunnel.id],
      ["key", "list"],
    ]) {
      const run = await runMoor([...command, "--json", `--data=${node.dataDir}`]);
      expect(run.code).toBe(0);
      operatorAnswers += run.stdout + run.stderr;
    }
    for (const pid of [node.process.pid, agent.pid]) {
      commandLines += (await readFile(`/proc/${pid}/cmdline`, "latin1")) + "\n";
    }
  });

  afterAll(async () => {
    await agent.stop();
    await ledger.close();
    await node.stop();
    await folder.remove();
  });

  const allSecrets = () => ({
    ...PLANTED,
    agentKey: tunnel.agentKey,
    keyedAgentKey: keyed.agentKey,
    connectorKey: keyed.connectorKey ?? "",
    operatorToken: node.operatorToken,
  });

  /** Names of the secrets that `text` holds, keys also by their random part alone. */
  function leaks(text: string, secrets: Readonly<Record<string, string>> = allSecrets()): string[] {
    return Object.entries(secrets)
      .filter(([, secret]) => text.includes(secret) || text.includes(randomPart(secret)))
      .map(([name]) => name);
  }

  verifies(
    ["R8", "T25"],
    "no key, token, header, argument or result is in any log, at the most talkative level",
    async () => {
      const logs = node.process.stderr.text() + agent.stderr.text() + agent.stdout.text();
      expect(logs).toContain("call-ended");
      expect(leaks(logs)).toEqual([]);
      for (const token of commandTokens) expect(logs).not.toContain(token);
    },
  );

  verifies(["T2", "T3"], "no operator answer, metric or list shows a secret again", () => {
    expect(operatorAnswers).toContain(tunnel.id);
    expect(operatorAnswers).toContain("moor_calls_ended_total");
    expect(leaks(operatorAnswers)).toEqual([]);
    for (const token of commandTokens) expect(operatorAnswers).not.toContain(token);
  });

  verifies("T3", "no error tells a caller what it or the server had sent", () => {
    expect(callerErrors).toContain("unauthorized");
    expect(leaks(callerErrors)).toEqual([]);
  });

  verifies("T25", "no command line carries a secret", () => {
    expect(leaks(commandLines, { agentKey: tunnel.agentKey, operatorToken: node.operatorToken })).toEqual([]);
  });

  verifies("T2", "the directory's files hold no key: only operator.json has the operator token", async () => {
    for (const file of await readdir(node.dataDir)) {
      const found = leaks(await readFile(path.join(node.dataDir, file), "latin1"));
      expect([file, found]).toEqual([file, file === "operator.json" ? ["operatorToken"] : []]);
    }
  });
});

/** The 43 characters of a key that nobody could guess; other secrets as they are. */
function randomPart(secret: string): string {
  return /^moor_[a-z]+_([0-9A-Za-z_-]{43})_/.exec(secret)?.[1] ?? secret;
}

/** A call answered by a poll and a response of our own, twice; returns its command token. */
async function answerOneCallByHand(node: MoorDev, tunnel: CreatedTunnel): Promise<string> {
  const agentHeaders = { authorization: `Bearer ${tunnel.agentKey}` };
  const route = `${node.endpoint}/v1/tunnels/${tunnel.id}`;
  const poll = fetch(`${route}/poll`, { headers: agentHeaders });
  const seen = `${node.operatorUrl}/v1/tunnels/${tunnel.id}`;
  const operator = { authorization: `Bearer ${node.operatorToken}` };
  await until(async () => {
    const shown = (await (await fetch(seen, { headers: operator })).json()) as { seen: boolean };
    return shown.seen;
  }, "the poll to be noted");
  const call = fetch(tunnel.connectorUrl, {
    method: "POST",
    headers: { authorization: `Bearer ${tunnel.connectorKey}`, "content-type": "application/json" },
    body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  });
  const { commands } = (await (await poll).json()) as {
    commands: { request_id: string; shard_token: string }[];
  };
  const [command] = commands;
  if (command === undefined) throw new Error("the poll carries no command");
  for (const status of [200, 404]) {
    const answer = await fetch(`${route}/response`, {
      method: "POST",
      headers: { ...agentHeaders, "x-tunnel-shard-token": command.shard_token },
      body: `{"request_id":"${command.request_id}","resp_json":{"jsonrpc":"2.0","id":1,"result":{}}}`,
    });
    expect(answer.status).toBe(status);
  }
  expect((await call).status).toBe(200);
  return command.shard_token;
}
