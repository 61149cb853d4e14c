import { describe, expect, test } from "vitest";
import type { ChannelName, InstanceId, TunnelId } from "@moor/protocol";
import { verifies, VirtualRuntime } from "@moor/testkit";
import type { SealingKey, ShardId } from "../src/directory/directory.ts";
import type { CallId, EntryId } from "../src/peer/peer-link.ts";
import { commandTokenEntry, createCommandTokens } from "../src/tokens/command-token.ts";
import { openPollingToken, sealPollingToken } from "../src/tokens/polling-token.ts";
import { openSessionId, sealSessionId } from "../src/tokens/session-token.ts";
import { createTokenSealer } from "../src/tokens/token-sealer.ts";

const TUNNEL = `tunnel_${"a".repeat(32)}` as TunnelId;
const OTHER = `tunnel_${"b".repeat(32)}` as TunnelId;
const ENTRY = "0123456789abcdef" as EntryId;
const CALL = "req_1" as CallId;
const runtime = new VirtualRuntime(7);

function ring(keys: readonly SealingKey[], residency = "global") {
  return { sealingKeys: () => keys, residency: () => residency };
}

function key(id: string, state: SealingKey["state"] = "sealing"): SealingKey {
  return { id, secret: runtime.randomBytes(32), state };
}

/** Every text that differs from `token` in one character or is cut, and the usual disguises. */
function* disfigured(token: string): Generator<string> {
  for (let at = 0; at < token.length; at += 1) {
    yield token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
    yield token.slice(0, at);
  }
  yield* [`${token}=`, `${token}A`, ` ${token}`, `${token}\n`, "", "é"];
}

describe("command tokens", () => {
  const tokens = createCommandTokens(ENTRY, runtime);

  verifies(["T5", "T6"], "a command token leads to its entry and call, for its own tunnel only", () => {
    const token = tokens.seal(TUNNEL, CALL);
    expect(token).toMatch(/^[0-9A-Za-z_-]{1,512}$/);
    expect(commandTokenEntry(token)).toBe(ENTRY);
    expect(tokens.open(TUNNEL, token)).toBe(CALL);
    expect(tokens.open(OTHER, token)).toBeUndefined();
  });

  verifies("T6", "the entry alone opens its tokens, and no disfigured one", () => {
    const token = tokens.seal(TUNNEL, CALL);
    expect(createCommandTokens(ENTRY, runtime).open(TUNNEL, token)).toBeUndefined();
    for (const text of disfigured(token))
      expect([text, tokens.open(TUNNEL, text)]).toEqual([text, undefined]);
  });
});

describe("polling tokens", () => {
  const first = key("tk_1");
  const placement = {
    shard: "s1" as ShardId,
    revision: 1_796_030_223_639_000,
    tokenKey: "tk_1",
    tokenFormat: 1,
  };
  const sealer = createTokenSealer("poll", ring([first]), runtime);

  verifies(
    "R23",
    "one tunnel at one revision has one token, from every node, before and after a key rotation",
    () => {
      const token = sealPollingToken(sealer, TUNNEL, placement) ?? "";
      const accepted: SealingKey = { ...first, state: "accepted" };
      for (const keys of [
        [first],
        [{ ...first }],
        [key("tk_2"), accepted],
        [first, key("tk_3", "accepted")],
      ]) {
        const elsewhere = createTokenSealer("poll", ring(keys), new VirtualRuntime(99));
        expect(sealPollingToken(elsewhere, TUNNEL, placement)).toBe(token);
        expect(openPollingToken(elsewhere, TUNNEL, token)).toEqual({
          shard: "s1",
          revision: placement.revision,
        });
      }
      expect(sealPollingToken(sealer, TUNNEL, { ...placement, revision: placement.revision + 1 })).not.toBe(
        token,
      );
      expect(sealPollingToken(sealer, TUNNEL, { ...placement, shard: "s2" as ShardId })).not.toBe(token);
      expect(sealPollingToken(sealer, OTHER, placement)).not.toBe(token);
    },
  );

  verifies(
    "R23",
    "another tunnel's, residency's or kind's token, a disfigured one and one of a retired key are as none",
    () => {
      const token = sealPollingToken(sealer, TUNNEL, placement) ?? "";
      expect(openPollingToken(sealer, OTHER, token)).toBeUndefined();
      const others = [
        createTokenSealer("poll", ring([first], "eu"), runtime),
        createTokenSealer("session", ring([first]), runtime),
        createTokenSealer("poll", ring([key("tk_1")]), runtime),
        createTokenSealer("poll", ring([key("tk_2")]), runtime),
      ];
      for (const other of others) expect(openPollingToken(other, TUNNEL, token)).toBeUndefined();
      for (const text of disfigured(token)) {
        expect([text, openPollingToken(sealer, TUNNEL, text)]).toEqual([text, undefined]);
      }
    },
  );

  test("a placement whose key or format this node lacks has no token here", () => {
    expect(sealPollingToken(sealer, TUNNEL, { ...placement, tokenKey: "tk_9" })).toBeUndefined();
    expect(sealPollingToken(sealer, TUNNEL, { ...placement, tokenFormat: 2 })).toBeUndefined();
    expect(sealPollingToken(sealer, TUNNEL, { shard: placement.shard, revision: 1 })).toBeUndefined();
  });
});

describe("session ids", () => {
  verifies("T8", "a sealed session id says instance and target session, on its own channel only", () => {
    const sealer = createTokenSealer("session", ring([key("tk_1")]), runtime);
    const session = {
      channel: "main" as ChannelName,
      instance: "i".repeat(32) as InstanceId,
      targetSessionId: undefined,
    };
    const sealed = sealSessionId(sealer, TUNNEL, session) ?? "";
    expect(openSessionId(sealer, TUNNEL, session.channel, sealed)).toEqual({ kind: "pinned", session });
    expect(openSessionId(sealer, TUNNEL, "files" as ChannelName, sealed)).toEqual({ kind: "broken" });
    expect(openSessionId(sealer, OTHER, session.channel, sealed)).toEqual({ kind: "broken" });
    expect(openSessionId(sealer, TUNNEL, session.channel, "a-targets-own-id")).toEqual({
      kind: "targets-own",
    });
  });
});
