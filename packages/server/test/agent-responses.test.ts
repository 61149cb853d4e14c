import { beforeEach, describe, expect } from "vitest";
import { RESPONSE_BODY_BYTES_MAX } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import type { TunnelRecord } from "../src/directory/directory.ts";
import type { FakeExchange } from "./support/fake-exchange.ts";
import { commandOf, SimulatedNode, type ReceivedCommand } from "./support/simulated-node.ts";

const RESULT = { jsonrpc: "2.0", id: 1, result: {} };

describe("response", () => {
  let node: SimulatedNode;
  let tunnel: TunnelRecord;
  let agentKey: string;
  let connectorKey: string;
  let call: FakeExchange;
  let command: ReceivedCommand;

  /** A call that was just handed out. */
  async function handOut(options: Parameters<SimulatedNode["call"]>[2] = {}): Promise<void> {
    const poll = await node.poll(tunnel, agentKey);
    call = await node.call(tunnel, connectorKey, options);
    command = commandOf(poll);
  }

  beforeEach(async () => {
    node = new SimulatedNode();
    ({ tunnel, agentKey, connectorKey } = node.tunnel());
    await handOut();
  });

  verifies(
    "T6",
    "a final is accepted with exactly {status: ok} and ends the caller byte for byte",
    async () => {
      const json = '{"jsonrpc":"2.0",  "id":1,"result":{"n":12345678901234567890,"f":1.0,"e":"\\u0041\\/"}}';
      const answer = await node.respond(
        tunnel,
        agentKey,
        command,
        `{"future":[1],"request_id":"${command.request_id}","resp_json":${json},"resp_timing":"nonsense"}`,
      );
      expect([answer.status, answer.text]).toEqual([200, '{"status":"ok"}']);
      expect([call.status, call.text]).toEqual([200, json]);
      expect(call.headers["Content-Type"]).toBe("application/json");
    },
  );

  verifies("T6", "a second copy, a finished and an unknown request are 404 and change nothing", async () => {
    await node.respond(tunnel, agentKey, command, { resp_json: RESULT });
    const copy = await node.respond(tunnel, agentKey, command, { resp_json: { other: true } });
    expect([copy.status, copy.errorCode]).toEqual([404, "pending_request_not_found"]);
    expect(JSON.parse(call.text)).toEqual(RESULT);
  });

  verifies(
    "T6",
    "the token of another request or tunnel, a broken one and none are 401 tunnel_request_mismatch",
    async () => {
      const first = command;
      await handOut();
      const other = node.tunnel();
      const foreignPoll = await node.poll(other.tunnel, other.agentKey);
      await node.call(other.tunnel, other.connectorKey);
      const foreign = commandOf(foreignPoll);
      for (const token of [first.shard_token, foreign.shard_token, "x", `${command.shard_token}A`, ""]) {
        const mixed = { request_id: command.request_id, shard_token: token };
        const answer = await node.respond(tunnel, agentKey, mixed, { resp_json: RESULT });
        expect([answer.status, answer.errorCode]).toEqual([401, "tunnel_request_mismatch"]);
      }
      const stolen = await node.respond(other.tunnel, other.agentKey, command, { resp_json: RESULT });
      expect(stolen.status).toBe(401);
      expect(call.status).toBeUndefined();
    },
  );

  verifies("T6", "an unsound final is 400 and ends the caller with a gateway error", async () => {
    for (const body of [
      "{",
      `{"request_id":"x","resp_json":"\\ud800"}`,
      `{"request_id":"x","resp_json":${"[".repeat(1_001)}${"]".repeat(1_001)}}`,
      Buffer.from([0x22, 0xff, 0x22]),
      "[]",
      '{"resp_json":{}}',
    ]) {
      await handOut();
      const answer = await node.respond(tunnel, agentKey, command, body);
      expect([String(body).slice(0, 20), answer.status]).toEqual([String(body).slice(0, 20), 400]);
      expect([call.status, call.errorCode]).toEqual([502, "invalid_agent_response"]);
    }
  });

  verifies("T6", "an unsound notification is 400 and the caller goes on waiting for its final", async () => {
    const body = `{"request_id":"${command.request_id}","resp_type":"jsonrpc_notify","resp_json":"\\ud800"}`;
    expect((await node.respond(tunnel, agentKey, command, body)).status).toBe(400);
    expect(call.status).toBeUndefined();
    await node.respond(tunnel, agentKey, command, { resp_json: RESULT });
    expect(call.status).toBe(200);
  });

  verifies("T6", "nesting is accepted at 1,000 levels of the body and refused one deeper", async () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    const wrap = (json: string) => `{"request_id":"${command.request_id}","resp_json":${json}}`;
    expect((await node.respond(tunnel, agentKey, command, wrap(nested(1_000)))).status).toBe(400);
    await handOut();
    expect((await node.respond(tunnel, agentKey, command, wrap(nested(999)))).status).toBe(200);
  });

  verifies(
    "T6",
    "a body at the size limit is taken and one byte more is 413 and ends the caller",
    async () => {
      const head = `{"request_id":"${command.request_id}","resp_json":"`;
      const exact = `${head}${"a".repeat(RESPONSE_BODY_BYTES_MAX - head.length - 2)}"}`;
      expect((await node.respond(tunnel, agentKey, command, exact)).status).toBe(200);
      await handOut();
      const over = await node.respond(tunnel, agentKey, command, `${exact} `);
      expect([over.status, over.errorCode]).toEqual([413, "request_body_too_large"]);
      expect([call.status, call.errorCode]).toEqual([502, "agent_response_too_large"]);
    },
  );

  verifies("T6", "resp_code absent or 0 is 200, and an unknown resp_type is 400", async () => {
    await node.respond(tunnel, agentKey, command, { resp_code: 0, resp_json: RESULT });
    expect(call.status).toBe(200);
    await handOut();
    const answer = await node.respond(tunnel, agentKey, command, {
      resp_type: "new_kind",
      resp_json: RESULT,
    });
    expect(answer.status).toBe(400);
  });

  verifies(
    "T7",
    "an agent that never answers costs the caller the tunnel's deadline and no more",
    async () => {
      await node.advance(54_999);
      expect(call.status).toBeUndefined();
      await node.advance(1);
      expect([call.status, call.errorCode]).toEqual([504, "deadline_exceeded"]);
      const late = await node.respond(tunnel, agentKey, command, { resp_json: RESULT });
      expect([late.status, late.errorCode]).toEqual([404, "pending_request_not_found"]);
    },
  );

  verifies("T7", "a deadline of 15 minutes is kept, and a queued call ends at it too", async () => {
    ({ tunnel, agentKey, connectorKey } = node.tunnel({ deadlineMs: 900_000 }));
    const waiting = await node.poll(tunnel, agentKey, { query: "channel=other" });
    const queued = await node.call(tunnel, connectorKey);
    for (let wait = 0; wait < 899_000; wait += 20_000) {
      await node.poll(tunnel, agentKey, { query: "channel=other" });
      await node.advance(20_000);
    }
    expect(waiting.status).toBe(204);
    expect([queued.status, queued.errorCode]).toEqual([504, "deadline_exceeded"]);
    const late = await node.poll(tunnel, agentKey);
    expect(late.status).toBeUndefined();
  });

  verifies(
    "T13",
    "a caller that hangs up before hand-out leaves nothing; after it, the answer is 404",
    async () => {
      call.leave();
      const answer = await node.respond(tunnel, agentKey, command, { resp_json: RESULT });
      expect([answer.status, answer.errorCode]).toEqual([404, "pending_request_not_found"]);
      const queued = await node.call(tunnel, connectorKey);
      queued.leave();
      expect((await node.poll(tunnel, agentKey)).status).toBeUndefined();
      expect(node.entry.calls.size).toBe(0);
    },
  );

  verifies("T13", "notifications/cancelled travels like any notification", async () => {
    const poll = await node.poll(tunnel, agentKey);
    const body = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}';
    const cancelled = await node.call(tunnel, connectorKey, { body });
    expect(poll.text).toContain(`"jsonrpc":${body}`);
    await node.respond(tunnel, agentKey, commandOf(poll), { resp_type: "notify_ack", resp_code: 202 });
    expect([cancelled.status, cancelled.text]).toEqual([202, ""]);
    expect(call.status).toBeUndefined();
  });
});
