import { Client } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { startLedgerServer } from "@moor/testkit";
import { startMcpServerV1, startMcpServerV2 } from "@moor/testkit/mcp-servers";

async function useTools(url: string) {
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const progress: number[] = [];
  const slow = await client.callTool(
    { name: "slow", arguments: { steps: 3, stepMs: 1 } },
    { onprogress: (report) => progress.push(report.progress) },
  );
  const sum = await client.callTool({ name: "add", arguments: { a: 2, b: 3 } });
  await client.close();
  return { progress, texts: [slow, sum].map((result) => JSON.stringify(result.content)) };
}

test("both generations of the SDK serve the same tools, with progress", async () => {
  for (const server of [await startMcpServerV1(), await startMcpServerV2()]) {
    const used = await useTools(server.url);
    await server.close();
    expect(used.progress).toEqual([1, 2, 3]);
    expect(used.texts.join()).toContain("3 steps done");
    expect(used.texts.join()).toContain('"5"');
  }
});

test("the ledger counts executions and answers with untouched bytes", async () => {
  const ledger = await startLedgerServer();
  ledger.answerWith((entry) =>
    entry.method === "tools/call"
      ? { kind: "result", rawResult: '{"b":1.0,"a":9007199254740993}' }
      : undefined,
  );
  const body =
    '{"jsonrpc":"2.0","id":90071992547409931,"method":"tools/call","params":{"arguments":{"call":"c1"}}}';
  const answer = await fetch(ledger.url, { method: "POST", body });
  expect(await answer.text()).toBe(
    '{"jsonrpc":"2.0","id":90071992547409931,"result":{"b":1.0,"a":9007199254740993}}',
  );
  expect(ledger.executions("c1")).toBe(1);
  expect(ledger.entries[0]?.body.toString()).toBe(body);
  await ledger.close();
});
