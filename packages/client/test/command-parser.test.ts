import { classifyPollAnswer, type Slice } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { parseCommand, type CommandResult } from "../src/command-parser.ts";

const GOOD = {
  command_type: "jsonrpc",
  request_id: "r1",
  shard_token: "t1",
  jsonrpc: { jsonrpc: "2.0", id: 1, method: "ping" },
};

function parseText(...commands: readonly string[]): CommandResult[] {
  const body = Buffer.from(`{"commands":[${commands.join(",")}]}`);
  const head = { status: 200, headerLines: [] };
  const outcome = classifyPollAnswer({ kind: "answer", head, body, bodyEnding: "complete" }, false);
  if (outcome.kind !== "success") throw new Error(outcome.kind);
  return outcome.commands.map((slice: Slice) => parseCommand(body, slice));
}

function parse(fields: Readonly<Record<string, unknown>>): CommandResult {
  return parseText(JSON.stringify({ ...GOOD, ...fields }))[0] as CommandResult;
}

function commandOf(result: CommandResult) {
  if (!result.ok) throw new Error(result.refusal);
  return result.command;
}

verifies("T5", "a command is read with its defaults and its message byte for byte", () => {
  const message = '{ "id" : 1.0, "method":"x", "params":{"n":12345678901234567890, "s":"\\u0041\\/"} }';
  const [result] = parseText(
    `{"command_type":"jsonrpc","request_id":"r\\u0031","shard_token":"t, 1","jsonrpc":${message},"future":[]}`,
  );
  const command = commandOf(result as CommandResult);
  expect(command).toMatchObject({
    type: "jsonrpc",
    requestId: "r1",
    token: "t, 1",
    channel: "main",
    headers: {},
  });
  expect(Buffer.from(command.message?.bytes ?? []).toString()).toBe(message);
  expect(command.message?.shape).toEqual({ kind: "request", rawId: "1.0", method: "x" });
  expect(command.responseTimeoutMs).toBeUndefined();
});

verifies("T18", "a malformed response_timeout is as absent, 0s is nothing left", () => {
  expect(commandOf(parse({ response_timeout: "1500ms" })).responseTimeoutMs).toBe(1_500);
  expect(commandOf(parse({ response_timeout: "1m30s" })).responseTimeoutMs).toBeUndefined();
  expect(commandOf(parse({ response_timeout: 5 })).responseTimeoutMs).toBeUndefined();
  expect(commandOf(parse({ response_timeout: "0s" })).responseTimeoutMs).toBe(0);
});

verifies("R20", "a command whose token cannot be echoed is refused before anything is done with it", () => {
  const refused = { ok: false, refusal: "bad-token", requestId: "r1" };
  expect(parse({ shard_token: "a\nb" })).toEqual(refused);
  expect(parse({ shard_token: "x".repeat(8_193) })).toEqual(refused);
  expect(parse({ shard_token: "é".repeat(4_097) })).toEqual(refused);
  expect(parse({ shard_token: undefined })).toEqual(refused);
  expect(commandOf(parse({ shard_token: "é".repeat(4_096) })).token).toHaveLength(4_096);
  expect(commandOf(parse({ shard_token: "with, comma and space" })).token).toBe("with, comma and space");
});

verifies("T23", "a bad command leaves its neighbours served", () => {
  const good = JSON.stringify(GOOD);
  const results = parseText(
    "7",
    good,
    JSON.stringify({ ...GOOD, request_id: 5 }),
    JSON.stringify({ ...GOOD, command_type: "levitate" }),
    JSON.stringify({ ...GOOD, command_type: null }),
    JSON.stringify({ ...GOOD, jsonrpc: [] }),
    JSON.stringify({ ...GOOD, jsonrpc: { id: 1 } }),
    JSON.stringify({ ...GOOD, channel: 7 }),
    good,
  );
  expect(results.map((result) => (result.ok ? "ok" : result.refusal))).toEqual([
    "not-an-object",
    "ok",
    "bad-request-id",
    "unknown-type",
    "bad-type",
    "bad-message",
    "bad-message",
    "bad-channel",
    "ok",
  ]);
});

test("headers are arrays of strings; what is not is left out", () => {
  const headers = { A: ["1", "2"], B: "3", C: [4, "5"], D: {}, E: [] };
  expect(commandOf(parse({ headers })).headers).toEqual({ A: ["1", "2"], B: ["3"], C: ["5"] });
  expect(commandOf(parse({ headers: "no" })).headers).toEqual({});
});

test("a message is told apart by its members", () => {
  const shape = (jsonrpc: unknown) => commandOf(parse({ jsonrpc })).message?.shape.kind;
  expect(shape({ method: "m" })).toBe("notification");
  expect(shape({ method: "m", id: "a" })).toBe("request");
  expect(shape({ id: 1, result: {} })).toBe("response");
  expect(shape({ id: 1, error: { code: 1 } })).toBe("response");
});

test("ending a session needs no message", () => {
  const command = commandOf(parse({ command_type: "session_termination", jsonrpc: undefined }));
  expect(command.type).toBe("session_termination");
});
