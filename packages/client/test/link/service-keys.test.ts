// Which keys a client trusts (L28, L29).

import { createHash } from "node:crypto";
import { serviceKeyId, type HelloOkFrame, type ServiceKeyId } from "@moor/protocol";
import { ConfigError } from "@moor/runtime";
import { makeServiceKey, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { ServiceKeys } from "../../src/link/service-keys.ts";

function announcing(nextKey: string): HelloOkFrame {
  return { t: "hello_ok", next_key: nextKey } as unknown as HelloOkFrame;
}

verifies("L28", "a key's id is that of its raw bytes", () => {
  const key = makeServiceKey();
  const found = new ServiceKeys("--service-key", [key.publicKey]).find(key.id);
  expect(found?.length).toBe(32);
  expect(
    serviceKeyId(
      createHash("sha256")
        .update(found ?? "")
        .digest(),
    ),
  ).toBe(key.id);
});

verifies("L29", "learned keys come beside the configured ones: four at most, the newest first", () => {
  const configured = makeServiceKey();
  const others = Array.from({ length: 6 }, makeServiceKey);
  const keys = new ServiceKeys("--service-key", [configured.publicKey]);
  for (const { publicKey } of others) keys.learn(announcing(publicKey));
  expect(keys.learned).toEqual(
    others
      .slice(2)
      .toReversed()
      .map(({ publicKey }) => publicKey),
  );
  expect(keys.find(configured.id)).toBeDefined();
  expect(others.map(({ id }) => keys.find(id) !== undefined)).toEqual([false, false, true, true, true, true]);
});

verifies("L29", "a configured key is not learned, and a hello_ok without a next key forgets none", () => {
  const configured = makeServiceKey();
  const next = makeServiceKey();
  const keys = new ServiceKeys("--service-key", [configured.publicKey]);
  keys.learn(announcing(configured.publicKey));
  expect(keys.learned).toEqual([]);
  keys.learn(announcing(next.publicKey));
  keys.learn({ t: "hello_ok" } as unknown as HelloOkFrame);
  keys.learn(announcing(next.publicKey));
  expect(keys.learned).toEqual([next.publicKey]);
});

verifies(
  "L29",
  "a learned key that signs stays, however many next keys come to nothing while it does",
  () => {
    const signing = makeServiceKey();
    const keys = new ServiceKeys("--service-key", [makeServiceKey().publicKey]);
    keys.learn(announcing(signing.publicKey));
    const others = Array.from({ length: 9 }, makeServiceKey);
    for (const { publicKey } of others)
      keys.learn({ ...announcing(publicKey), key: signing.id as ServiceKeyId });
    expect(keys.find(signing.id)).toBeDefined();
    expect(keys.find(others.at(-1)?.id ?? "")).toBeDefined();
    expect(keys.learned.length).toBe(4);
  },
);

verifies("L13", "what a record holds in place of keys is left out", () => {
  const key = makeServiceKey();
  const keys = new ServiceKeys("--service-key", [makeServiceKey().publicKey]);
  keys.recall(["", "short", `${"A".repeat(42)}B`, key.publicKey, key.publicKey]);
  expect(keys.learned).toEqual([key.publicKey]);
});

verifies("L28", "no key, and a text that is none, are refused at start", () => {
  for (const given of [[], ["short"], [`${"A".repeat(42)}B`], ["A".repeat(44)]]) {
    expect(() => new ServiceKeys("--service-key", given)).toThrow(ConfigError);
  }
});
