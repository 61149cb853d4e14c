// Replays every vector against a copy of @moor/protocol: the real one in tests, broken ones in scripts/break-rules.ts.

import assert from "node:assert/strict";
import { replayEach, type ReplayResult } from "./replay-each.ts";
import { replayLinkVectors } from "./replay-link-vectors.ts";
import { replaySequence } from "./replay-sequence.ts";
import { bytesOf, headerValueOf, readVectors, type BytesRecipe } from "./vector-files.ts";
import { assertMs, endingOf, neutral, type ProtocolModule } from "./vector-terms.ts";

/** Replays all vectors. */
export function replayVectors(protocol: ProtocolModule): readonly ReplayResult[] {
  return [...replayPollVectors(protocol), ...replayLinkVectors(protocol)];
}

/** Replays the vectors of the poll plane. */
export function replayPollVectors(protocol: ProtocolModule): readonly ReplayResult[] {
  return [
    ...replayEach("capabilities", readVectors("capabilities").cases, (vector) => {
      const names = protocol.parseCapabilities(vector.lines.map(headerValueOf));
      assert.deepEqual([...names].sort(), [...vector.expect].sort());
    }),
    ...replayEach("corrections", readVectors("corrections").cases, (vector) => {
      const ending = endingOf(vector);
      const outcome = protocol.classifyPollAnswer(ending, false);
      assert.deepEqual(neutral(outcome), neutralCorrection(vector.expect));
      // The reader by itself must refuse what is no correction, whoever calls it.
      const correction = protocol.parseCorrection(ending.head, ending.body, ending.bodyEnding === "complete");
      assert.equal(correction.ok, vector.expect.outcome === "correction");
    }),
    ...replayEach("sequences", readVectors("sequences").sequences, (vector) =>
      replaySequence(protocol, vector),
    ),
    ...replayEach("timeouts", readVectors("timeouts").cases, (vector) => {
      assertMs(protocol.parseResponseTimeout(vector.value), vector.expectMs);
    }),
    ...replayEach("retry-after", readVectors("retry-after").cases, ({ value, date, wallMs, expectMs }) => {
      assertMs(protocol.parseRetryAfter(value, { answerDate: date, wallMs }), expectMs);
    }),
    ...replayEach("backoff", readVectors("backoff").cases, (vector) => {
      let state = protocol.createPollBackoff();
      for (const event of vector.run) {
        if (event.event === "succeeded") state = protocol.backoffAfterSuccess(state);
        else {
          const next = protocol.backoffAfterFailure(state, event);
          assertMs(next.delayMs, event.expectMs);
          state = next.state;
        }
      }
    }),
    ...replayServerInfo(protocol),
    ...replayTunnelFailure(protocol),
    ...replayEach("command-tokens", readVectors("command-tokens").cases, (vector) => {
      assert.equal(protocol.isCommandToken(textOf(vector.token)), vector.expect);
    }),
  ];
}

function replayServerInfo(protocol: ProtocolModule): readonly ReplayResult[] {
  const { parse, encode } = readVectors("server-info");
  return [
    ...replayEach("server-info/parse", parse, (vector) => {
      assert.deepEqual(protocol.parseServerInfo(vector.lines.map(headerValueOf)) ?? null, vector.expect);
    }),
    ...replayEach("server-info/encode", encode, (vector) => {
      assert.equal(
        refusedAsNull(() => protocol.encodeServerInfo(vector.channels)),
        vector.expect,
      );
    }),
  ];
}

function replayTunnelFailure(protocol: ProtocolModule): readonly ReplayResult[] {
  const { parse, encode } = readVectors("tunnel-failure");
  return [
    ...replayEach("tunnel-failure/parse", parse, (vector) => {
      assert.deepEqual(protocol.parseTunnelFailure(vector.value) ?? null, vector.expect);
    }),
    ...replayEach("tunnel-failure/encode", encode, ({ rawId, status, failure, expect }) => {
      assert.equal(
        refusedAsNull(() => protocol.encodeTunnelFailure(rawId, status, failure)),
        expect,
      );
    }),
  ];
}

function neutralCorrection(expect: { outcome: string; token?: BytesRecipe; revision?: number }): unknown {
  const { outcome, token, revision } = expect;
  return token === undefined ? { outcome } : { outcome, token: headerValueOf(token), revision };
}

/** Tokens are texts as JSON gave them, lone surrogates included: not bytes. */
function textOf(recipe: BytesRecipe): string {
  return typeof recipe === "string" ? recipe : Buffer.from(bytesOf(recipe)).toString("utf8");
}

function refusedAsNull(encode: () => string): string | null {
  try {
    return encode();
  } catch (thrown) {
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}
