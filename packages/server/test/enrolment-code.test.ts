// Enrolment codes as texts, and what happens when two of them fall on the same row.

import { ProtocolError, parseHomeId, type HomeId } from "@moor/protocol";
import { verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import { mintEnrolmentCode, parseEnrolmentCode } from "../src/directory/enrolment-code.ts";
import type { Mutation } from "../src/directory/mutations.ts";
import type { DirectoryParts } from "../src/directory/operations/directory-parts.ts";
import { enrolmentOperations } from "../src/directory/operations/enrolment-operations.ts";

const HOME = parseHomeId("anna") as HomeId;

verifies(
  "L28",
  "a code is 20 characters of Crockford's alphabet, read back in whatever way it is typed",
  () => {
    const runtime = new VirtualRuntime(5);
    const seen = new Set<string>();
    for (let count = 0; count < 200; count += 1) {
      const { code, stored } = mintEnrolmentCode(runtime);
      const text = code.reveal();
      expect(text).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{8}){2}$/);
      expect(stored).toEqual({ id: text.slice(0, 4), secretHash: expect.stringMatching(/^[0-9a-f]{64}$/) });
      const typed = text.toLowerCase().replaceAll("-", "").replaceAll("1", "i").replaceAll("0", "o");
      for (const form of [text, typed, ` ${typed}\n`, text.replaceAll("1", "L")]) {
        expect(parseEnrolmentCode(form)).toEqual(stored);
      }
      for (const character of text.replaceAll("-", "")) seen.add(character);
    }
    expect(seen.size).toBe(32);
  },
);

test("what is no code is none, however long", () => {
  const { code } = mintEnrolmentCode(new VirtualRuntime(1));
  const text = code.reveal();
  for (const wrong of [
    "",
    text.slice(1),
    `${text}0`,
    text.replace(/.$/, "U"),
    text.replace("-", "_"),
    "é".repeat(20),
  ]) {
    expect(parseEnrolmentCode(wrong)).toBeUndefined();
  }
  expect(parseEnrolmentCode("0".repeat(1_000_000))).toBeUndefined();
});

/** Operations on a store that refuses the first `conflicts` codes, and then every one with `last`. */
function operationsWith(conflicts: number, last?: ProtocolError) {
  const minted: string[] = [];
  const change = async (mutation: Mutation) => {
    if (mutation.kind !== "create-enrolment") throw new Error(mutation.kind);
    minted.push(mutation.id);
    if (minted.length <= conflicts) throw new ProtocolError("conflict");
    if (last !== undefined) throw last;
    return [{ expires_at_ms: 7 }];
  };
  const parts = { change, runtime: new VirtualRuntime(2) } as unknown as DirectoryParts;
  return { minted, create: () => enrolmentOperations(parts).createEnrolment(HOME) };
}

test("a code whose row another home's code has is minted anew, and not for ever", async () => {
  const lucky = operationsWith(3);
  expect(await lucky.create()).toMatchObject({ expiresAtMs: 7 });
  expect(new Set(lucky.minted).size).toBe(4);
  const never = operationsWith(100);
  await expect(never.create()).rejects.toMatchObject({ code: "conflict" });
  expect(never.minted).toHaveLength(5);
  const refused = operationsWith(0, new ProtocolError("home_not_found"));
  await expect(refused.create()).rejects.toMatchObject({ code: "home_not_found" });
  expect(refused.minted).toHaveLength(1);
});
