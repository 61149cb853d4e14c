import { describe, expect, test } from "vitest";
import {
  DEFAULT_CHANNEL,
  HEADER,
  isCommandType,
  isFinalResponseType,
  isReservedHeader,
  isResponseType,
  parseChannelName,
  parseInstanceId,
  parseTunnelId,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";

describe("names", () => {
  verifies("T1", "a tunnel id is tunnel_ and 32 characters of a-z and 0-9", () => {
    const id = `tunnel_${"a0".repeat(16)}`;
    expect(parseTunnelId(id)).toBe(id);
    for (const text of [`${id}0`, id.slice(0, -1), id.toUpperCase(), `x${id}`, `${id}\n`, "tunnel_", ""]) {
      expect(parseTunnelId(text), JSON.stringify(text)).toBeUndefined();
    }
  });

  verifies("T4", "a channel name has 1 to 64 characters of a-z, 0-9, _ and -", () => {
    expect(parseChannelName("a-z_09")).toBe("a-z_09");
    expect(parseChannelName("n".repeat(64))).toBe("n".repeat(64));
    for (const text of ["", "n".repeat(65), "A", "a.b", "a b", "a\n", "\u00e9"]) {
      expect(parseChannelName(text), JSON.stringify(text)).toBeUndefined();
    }
    expect(parseChannelName(DEFAULT_CHANNEL)).toBe("main");
  });

  verifies("T16", "an instance id is any visible ASCII up to 128 characters", () => {
    expect(parseInstanceId("0f".repeat(16))).toBe("0f".repeat(16));
    expect(parseInstanceId("x".repeat(128))).toBe("x".repeat(128));
    for (const text of ["", "x".repeat(129), "a b", "a\u007f", "\u00e9", "a\n"]) {
      expect(parseInstanceId(text), JSON.stringify(text)).toBeUndefined();
    }
  });

  verifies("T6", "all response types but jsonrpc_notify are final", () => {
    const types = [
      "jsonrpc_response",
      "notify_ack",
      "session_termination_response",
      "oauth_discovery_response",
    ] as const;
    expect(types.every(isFinalResponseType)).toBe(true);
    expect(isFinalResponseType("jsonrpc_notify")).toBe(false);
    expect(isResponseType("constructor")).toBe(false);
  });

  verifies("R10", "every header of the wire's own is reserved, in any case", () => {
    const own = Object.values(HEADER).filter((name) => name.startsWith("X-Tunnel-"));
    expect(own.length).toBeGreaterThanOrEqual(7);
    expect(own.every((name) => isReservedHeader(name) && isReservedHeader(name.toLowerCase()))).toBe(true);
    expect(isReservedHeader("X-Tunnel")).toBe(false);
    expect(isReservedHeader("Authorization")).toBe(false);
  });

  test("command types are the three of the spec", () => {
    expect(["jsonrpc", "session_termination", "oauth_discovery"].every(isCommandType)).toBe(true);
    expect(isCommandType("JSONRPC")).toBe(false);
  });
});
