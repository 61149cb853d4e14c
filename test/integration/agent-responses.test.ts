import { startLedgerServer, startScriptedService, verifies, type ScriptedAnswer } from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import { command, commands, playPolls, posted, startAgent, toolCall } from "./agent-kit.ts";

async function serviceWith(...polls: readonly ScriptedAnswer[]) {
  const play = playPolls(polls);
  const service = await startScriptedService(({ path }) => play(path));
  onTestFinished(() => service.close());
  return service;
}

async function ledger() {
  const server = await startLedgerServer();
  onTestFinished(() => server.close());
  return server;
}

verifies(
  ["T5", "T6", "T20"],
  "a call reaches the target and its result the service byte for byte",
  async () => {
    const target = await ledger();
    const rawResult = '{"b":1.0,"a":12345678901234567890,"s":"\\u00e9\\/"}';
    target.answerWith(() => ({ kind: "result", rawResult }));
    const message = toolCall("9007199254740993", '{"z":1.0,"a":1e2}');
    const service = await serviceWith(commands(command({ id: "r1", jsonrpc: message })));
    startAgent({ endpoint: service.origin, channels: [{ mcpUrl: target.url }] });
    await service.untilSeen("a response", () => service.responses.length > 0);
    expect(target.entries.map(({ body }) => body.toString())).toEqual([message]);
    const [response] = service.responses;
    expect(response?.values("X-Tunnel-Shard-Token")).toEqual(["token-of-r1"]);
    expect(response?.body.toString()).toContain(`"result":${rawResult}`);
    expect(response?.body.toString()).toContain('"id":9007199254740993');
    expect(posted(response?.body ?? Buffer.alloc(0))).toMatchObject({
      request_id: "r1",
      channel: "main",
      resp_type: "jsonrpc_response",
      resp_code: 200,
    });
  },
);
