// Replays the vectors of the link plane against a copy of @moor/protocol.

import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, verify, type KeyObject } from "node:crypto";
import { replayLinkSequence } from "./replay-link-sequence.ts";
import { replayEach, type ReplayResult } from "./replay-each.ts";
import { bytesOf, readVectors, type BytesRecipe } from "./vector-files.ts";
import type { FrameRecipe, SignatureKey } from "./link-vector-files.ts";
import type { ProtocolModule } from "./vector-terms.ts";

/** Replays all vectors of the link plane. */
export function replayLinkVectors(protocol: ProtocolModule): readonly ReplayResult[] {
  const hosts = readVectors("link-hosts");
  const spreads = readVectors("link-spreads");
  return [
    ...replayEach("link-hosts/cases", hosts.cases, ({ host, base, expect }) => {
      assert.equal(protocol.shardHostOk(host, base), expect);
    }),
    ...replayEach("link-hosts/bases", hosts.bases, ({ base, expect }) => {
      assert.equal(protocol.parseBaseHost(base), expect ? base : undefined);
    }),
    ...replayEach("link-spreads/cases", spreads.cases, ({ reason, expectMs }) => {
      assert.equal(protocol.restartSpreadMs(reason), expectMs);
    }),
    ...replayEach("link-spreads/fields", spreads.fields, ({ spreadMs, expectMs }) => {
      assert.equal(protocol.clampSpreadMs(spreadMs), expectMs);
    }),
    ...replayEach("link-tokens", readVectors("link-tokens").cases, ({ token, expect }) => {
      assert.deepEqual(protocol.parseLinkToken(textOf(token)) ?? null, expect);
    }),
    ...replayEach("link-records", readVectors("link-records").cases, ({ text, expect }) => {
      const record = protocol.parseLinkRecord(textOf(text));
      assert.deepEqual(record ? { home: record.home, host: record.host ?? null } : null, expect);
    }),
    ...replayEach("link-frames", readVectors("link-frames").cases, (vector) => {
      const bytes = bytesOf(vector.text);
      const parsed = protocol.parseLinkFrame(bytes, vector.from);
      assert.equal(parsed.kind, vector.expect.kind);
      const text = wellFormedText(bytes);
      if (text !== undefined) assert.deepEqual(protocol.parseLinkFrame(text, vector.from), parsed);
      if (parsed.kind !== "frame" || vector.expect.kind !== "frame") return;
      assert.deepEqual({ ...parsed.frame }, frameOf(vector.expect.frame));
      assert.deepEqual(protocol.parseLinkFrame(protocol.encodeLinkFrame(parsed.frame), vector.from), parsed);
    }),
    ...replaySignatures(protocol),
    ...replayEach("link-sequences", readVectors("link-sequences").sequences, (vector) =>
      replayLinkSequence(protocol, vector),
    ),
  ];
}

function replaySignatures(protocol: ProtocolModule): readonly ReplayResult[] {
  const { keys, proofs, helloOks } = readVectors("link-signatures");
  const keyIdOf = (key: string) => {
    const raw = protocol.decodeBase64url(key) ?? new Uint8Array();
    return protocol.serviceKeyId(createHash("sha256").update(raw).digest());
  };
  return [
    ...replayEach("link-signatures/keys", keys, (vector) => {
      assert.equal(publicHalf(vector), vector.key);
      assert.equal(keyIdOf(vector.key), vector.keyId);
    }),
    ...replayEach("link-signatures/proofs", proofs, (vector) => {
      const bytes = protocol.linkProofBytes(vector);
      assert.equal(Buffer.from(bytes).toString(), vector.bytes);
      assert.equal(isSigned(bytes, vector), vector.expect);
    }),
    ...replayEach("link-signatures/helloOks", helloOks, (vector) => {
      const bytes = protocol.linkHelloOkBytes({ ...vector, nextKey: vector.nextKey ?? undefined });
      assert.equal(Buffer.from(bytes).toString(), vector.bytes);
      assert.equal(keyIdOf(vector.key), vector.keyId);
      assert.equal(isSigned(bytes, vector), vector.expect);
    }),
  ];
}

function isSigned(bytes: Uint8Array, { key, sig }: { readonly key: string; readonly sig: string }): boolean {
  return verify(null, bytes, rawPublicKey(key), Buffer.from(sig, "base64url"));
}

function rawPublicKey(x: string): KeyObject {
  return createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
}

function publicHalf({ seed, key }: SignatureKey): string | undefined {
  const jwk = { kty: "OKP", crv: "Ed25519", d: seed, x: key };
  return createPublicKey(createPrivateKey({ format: "jwk", key: jwk })).export({ format: "jwk" }).x;
}

function frameOf({ data, ...members }: FrameRecipe): Readonly<Record<string, unknown>> {
  return data === undefined ? members : { ...members, data: textOf(data) };
}

function textOf(recipe: BytesRecipe): string {
  return typeof recipe === "string" ? recipe : Buffer.from(bytesOf(recipe)).toString("utf8");
}

function wellFormedText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
