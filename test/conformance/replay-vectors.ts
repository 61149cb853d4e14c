// Replays every vector against a copy of @moor/protocol: the real one in tests, broken ones in scripts/break-rules.ts.
//
// I1  A check throws on the first difference; replayVectors turns that into a failure of its case and goes on.

import assert from "node:assert/strict";
import { replaySequence } from "./replay-sequence.ts";
import { bytesOf, headerValueOf, readVectors, type BytesRecipe, type VectorCase } from "./vector-files.ts";
import { assertMs, endingOf, neutral, type ProtocolModule } from "./vector-terms.ts";

/** One case, and what went wrong with it if anything did. */
export interface ReplayResult {
  /** `file/id`, for lists of two kinds `file/kind/id`. */
  readonly id: string;
  readonly spec: readonly string[];
  readonly failure: string | undefined;
}

/** Replays all vectors. */
export function replayVectors(protocol: ProtocolModule): readonly ReplayResult[] {
  return [
    ...each("capabilities", readVectors("capabilities").cases, (vector) => {
      const names = protocol.parseCapabilities(vector.lines.map(headerValueOf));
      assert.deepEqual([...names].sort(), [...vector.expect].sort());
    }),
    ...each("corrections", readVectors("corrections").cases, (vector) => {
      const ending = endingOf(vector);
      const outcome = protocol.classifyPollAnswer(ending, false);
      assert.deepEqual(neutral(outcome), neutralCorrection(vector.expect));
      // The reader by itself must refuse what is no correction, whoever calls it.
      const correction = protocol.parseCorrection(ending.head, ending.body, ending.bodyEnding === "complete");
      assert.equal(correction.ok, vector.expect.outcome === "correction");
    }),
    ...each("sequences", readVectors("sequences").sequences, (vector) => replaySequence(protocol, vector)),
    ...each("timeouts", readVectors("timeouts").cases, (vector) => {
      assertMs(protocol.parseResponseTimeout(vector.value), vector.expectMs);
    }),
    ...each("retry-after", readVectors("retry-after").cases, ({ value, date, wallMs, expectMs }) => {
      assertMs(protocol.parseRetryAfter(value, { answerDate: date, wallMs }), expectMs);
    }),
    ...each("backoff", readVectors("backoff").cases, (vector) => {
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
    ...each("command-tokens", readVectors("command-tokens").cases, (vector) => {
      assert.equal(protocol.isCommandToken(textOf(vector.token)), vector.expect);
    }),
  ];
}

function replayServerInfo(protocol: ProtocolModule): readonly ReplayResult[] {
  const { parse, encode } = readVectors("server-info");
  return [
    ...each("server-info/parse", parse, (vector) => {
      assert.deepEqual(protocol.parseServerInfo(vector.lines.map(headerValueOf)) ?? null, vector.expect);
    }),
    ...each("server-info/encode", encode, (vector) => {
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
    ...each("tunnel-failure/parse", parse, (vector) => {
      assert.deepEqual(protocol.parseTunnelFailure(vector.value) ?? null, vector.expect);
    }),
    ...each("tunnel-failure/encode", encode, ({ rawId, status, failure, expect }) => {
      assert.equal(
        refusedAsNull(() => protocol.encodeTunnelFailure(rawId, status, failure)),
        expect,
      );
    }),
  ];
}

function each<Vector extends VectorCase>(
  list: string,
  vectors: readonly Vector[],
  check: (vector: Vector) => void,
): readonly ReplayResult[] {
  return vectors.map((vector) => {
    const named = { id: `${list}/${vector.id}`, spec: vector.spec };
    try {
      check(vector);
      return { ...named, failure: undefined };
    } catch (thrown) {
      return { ...named, failure: thrown instanceof Error ? thrown.message : String(thrown) };
    }
  });
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
