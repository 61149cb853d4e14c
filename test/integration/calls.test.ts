// A fleet in small: real node, real agents, a server that keeps a ledger, callers that never retry.

import { Buffer } from "node:buffer";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createTunnel,
  startLedgerServer,
  startMoorAgent,
  startMoorDev,
  verifies,
  type CreatedTunnel,
  type LedgerServer,
  type MoorDev,
  type RunningProcess,
} from "@moor/testkit";

const CALLS = 1_000;
const CONCURRENCY = 50;

describe("two agents of one tunnel", () => {
  let node: MoorDev;
  let ledger: LedgerServer;
  let tunnel: CreatedTunnel;
  const agents: RunningProcess[] = [];

  beforeAll(async () => {
    node = await startMoorDev();
    ledger = await startLedgerServer();
    tunnel = await createTunnel(node);
    for (let agent = 0; agent < 2; agent += 1) {
      agents.push(await startMoorAgent({ endpoint: node.endpoint, tunnel, mcp: ledger.url }));
    }
  });

  afterAll(async () => {
    for (const agent of agents) {
      expect(await agent.stop()).toEqual({ kind: "exited", code: 0 });
      await agent.expectGroupEmpty();
    }
    await ledger.close();
    await node.stop();
  });

  function post(body: string | Buffer, accept = "application/json, text/event-stream"): Promise<Response> {
    return fetch(tunnel.connectorUrl, {
      method: "POST",
      headers: {
        authorization: `Bearer ${tunnel.connectorKey}`,
        "content-type": "application/json",
        accept,
      },
      body,
    });
  }

  verifies(
    ["T4", "T9", "T11"],
    "1,000 calls at concurrency 50: each executed once, answered once, to its own caller",
    async () => {
      const before = ledger.entries.length;
      let next = 0;
      const worker = async () => {
        for (let call = next++; call < CALLS; call = next++) {
          const name = `call-${call}`;
          const answer = await post(
            `{"jsonrpc":"2.0","id":${call},"method":"tools/call","params":{"name":"record","arguments":{"call":"${name}"}}}`,
          );
          expect(answer.status).toBe(200);
          expect(await answer.json()).toEqual({
            jsonrpc: "2.0",
            id: call,
            result: { content: [{ type: "text", text: name }] },
          });
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, worker));
      expect(ledger.entries.length - before).toBe(CALLS);
      for (let call = 0; call < CALLS; call += 1) expect(ledger.executions(`call-${call}`)).toBe(1);
    },
  );

  verifies(
    ["T5", "T6", "T20"],
    "what JSON parsers lose arrives byte for byte, both ways, in both answer forms",
    async () => {
      const raw =
        '{ "big" : 123456789012345678901234567890, "one":1.0,"exp":1E+2, "z":1,"a":2,"10":3,"2":4, "s":"\\u0041\\/\\ud83d\\ude00é\\u2028" , "neg":-0 }';
      const id = "90071992547409931234567890";
      for (const isStream of [false, true]) {
        ledger.answerWith(() =>
          isStream ? { kind: "stream", rawMessages: [], rawResult: raw } : { kind: "result", rawResult: raw },
        );
        const body = `{"jsonrpc":"2.0",\t"id":${id},"method":"tools/call","params":${raw}}`;
        const text = await (await post(body)).text();
        const final = `{"jsonrpc":"2.0","id":${id},"result":${raw}}`;
        expect(text).toBe(isStream ? `data: ${final}\n\n` : final);
        expect(ledger.entries.at(-1)?.body.toString()).toBe(body);
      }
      ledger.answerWith(() => undefined);
    },
  );

  verifies(["T6", "T20"], "results of 1 MB and 10 MB arrive byte for byte", async () => {
    for (const byteCount of [1_000_000, 10_000_000]) {
      const text = JSON.stringify("é".repeat(byteCount / 2));
      ledger.answerWith(() => ({ kind: "result", rawResult: `{"content":${text}}` }));
      const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call"}';
      const answer = Buffer.from(await (await post(body)).arrayBuffer());
      expect(answer.equals(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"content":${text}}}`))).toBe(true);
    }
    ledger.answerWith(() => undefined);
  });

  verifies("T11", "notifications arrive before the final, in order, whatever their number", async () => {
    const messages = Array.from(
      { length: 50 },
      (_, at) => `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":${at}.0}}`,
    );
    ledger.answerWith(() => ({ kind: "stream", rawMessages: messages, rawResult: "{}" }));
    const text = await (await post('{"jsonrpc":"2.0","id":1,"method":"tools/call"}')).text();
    ledger.answerWith(() => undefined);
    const expected = [...messages, '{"jsonrpc":"2.0","id":1,"result":{}}'];
    expect(text).toBe(expected.map((message) => `data: ${message}\n\n`).join(""));
  });

  test("a caller that leaves mid-call harms nobody: the next calls are served", async () => {
    ledger.answerWith(() => ({ kind: "result", rawResult: "{}", delayMs: 200 }));
    const abort = new AbortController();
    const left = fetch(tunnel.connectorUrl, {
      method: "POST",
      headers: { authorization: `Bearer ${tunnel.connectorKey}`, "content-type": "application/json" },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"call":"left"}}}',
      signal: abort.signal,
    });
    abort.abort();
    await expect(left).rejects.toThrow();
    ledger.answerWith(() => undefined);
    expect((await post('{"jsonrpc":"2.0","id":2,"method":"ping"}')).status).toBe(200);
  });
});
