import { describe, expect, test } from "vitest";
import type { ChannelName, InstanceId, TunnelId } from "@moor/protocol";
import { verifies, VirtualRuntime } from "@moor/testkit";
import type { SealingKey } from "../src/directory/directory.ts";
import type { CallId, EntryId } from "../src/peer/peer-link.ts";
import { openCommandToken, sealCommandToken } from "../src/tokens/command-token.ts";
import { openSessionId, sealSessionId } from "../src/tokens/session-token.ts";
import { createTokenSealer } from "../src/tokens/token-sealer.ts";

const TUNNEL = `tunnel_${"a".repeat(32)}` as TunnelId;
const OTHER = `tunnel_${"b".repeat(32)}` as TunnelId;
const ADDRESS = { entry: "e-1" as EntryId, callId: "req_1" as CallId };
const runtime = new VirtualRuntime(7);

function ring(...keys: SealingKey[]) {
  return { sealingKeys: () => keys, residency: () => "global" };
}

function key(id: string, state: SealingKey["state"] = "sealing"): SealingKey {
  return { id, secret: runtime.randomBytes(32), state };
}

describe("sealed tokens", () => {
  const first = key("tk_1");

  verifies(["T5", "T6"], "a command token leads back to its call, for its own tunnel only", () => {
    const sealer = createTokenSealer("command", ring(first), runtime);
    const token = sealCommandToken(sealer, TUNNEL, ADDRESS);
    expect(token).toMatch(/^[0-9A-Za-z_-]{1,512}$/);
    expect(openCommandToken(sealer, TUNNEL, token)).toEqual(ADDRESS);
    expect(openCommandToken(sealer, OTHER, token)).toBeUndefined();
  });

  test("every changed, cut or non-canonical text is refused", () => {
    const sealer = createTokenSealer("command", ring(first), runtime);
    const token = sealCommandToken(sealer, TUNNEL, ADDRESS);
    for (let at = 0; at < token.length; at += 1) {
      const changed = token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
      expect(sealer.open(TUNNEL, changed)).toBeUndefined();
      expect(sealer.open(TUNNEL, token.slice(0, at))).toBeUndefined();
    }
    for (const text of [`${token}=`, `${token}A`, ` ${token}`, `${token}\n`, "", "é"]) {
      expect(sealer.open(TUNNEL, text)).toBeUndefined();
    }
  });

  test("another kind, residency or ring does not open a token", () => {
    const token = createTokenSealer("command", ring(first), runtime).seal(TUNNEL, Buffer.from("x"));
    const elsewhere = { sealingKeys: () => [first], residency: () => "eu" };
    expect(createTokenSealer("session", ring(first), runtime).open(TUNNEL, token)).toBeUndefined();
    expect(createTokenSealer("command", elsewhere, runtime).open(TUNNEL, token)).toBeUndefined();
    expect(createTokenSealer("command", ring(key("tk_1")), runtime).open(TUNNEL, token)).toBeUndefined();
  });

  test("tokens of an accepted key open after the ring's sealing key changed, of a retired one no more", () => {
    const old = createTokenSealer("command", ring(first), runtime).seal(TUNNEL, Buffer.from("x"));
    const accepted: SealingKey = { ...first, state: "accepted" };
    const second = key("tk_2");
    expect(createTokenSealer("command", ring(second, accepted), runtime).open(TUNNEL, old)).toBeDefined();
    expect(createTokenSealer("command", ring(second), runtime).open(TUNNEL, old)).toBeUndefined();
  });

  verifies("T8", "a sealed session id says instance and target session, on its own channel only", () => {
    const sealer = createTokenSealer("session", ring(first), runtime);
    const session = {
      channel: "main" as ChannelName,
      instance: "i".repeat(32) as InstanceId,
      targetSessionId: undefined,
    };
    const sealed = sealSessionId(sealer, TUNNEL, session);
    expect(openSessionId(sealer, TUNNEL, session.channel, sealed)).toEqual(session);
    expect(openSessionId(sealer, TUNNEL, "files" as ChannelName, sealed)).toBeUndefined();
    expect(openSessionId(sealer, TUNNEL, session.channel, "a-targets-own-id")).toBeUndefined();
  });
});
