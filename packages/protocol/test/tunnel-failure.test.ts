import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { encodeTunnelFailure, parseTunnelFailure, scanJson, type TunnelFailure } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const anyFailure: fc.Arbitrary<TunnelFailure> = fc.oneof(
  fc.record({
    version: fc.constant(1 as const),
    source: fc.constant("target_http" as const),
    upstream_response_received: fc.constant(true),
    upstream_status: fc.integer({ min: 400, max: 599 }),
  }),
  fc.record({
    version: fc.constant(1 as const),
    source: fc.constantFrom(
      "dns" as const,
      "tls" as const,
      "connect" as const,
      "timeout" as const,
      "protocol" as const,
    ),
    transport_error_kind: fc.stringMatching(/^[a-z0-9_]{1,64}$/),
    upstream_response_received: fc.boolean(),
  }),
);

describe("tunnel_failure", () => {
  verifies("T20", "what an agent writes a reader reads back, the request's id byte for byte", () => {
    checkProperty(
      fc.property(anyFailure, fc.json(), fc.integer({ min: 400, max: 599 }), (failure, rawId, status) => {
        const message = encodeTunnelFailure(rawId, status, failure);
        const bytes = new TextEncoder().encode(message);
        expect(scanJson(bytes, { depthMax: 1000 }).ok).toBe(true);
        expect(message.startsWith(`{"jsonrpc":"2.0","id":${rawId},"error":{"code":-32603,`)).toBe(true);
        const { error } = JSON.parse(message) as { error: { data: { tunnel_failure: unknown } } };
        expect(parseTunnelFailure(error.data.tunnel_failure)).toEqual(failure);
      }),
    );
  });

  verifies("T20", "any value is read as a failure or as none, and never throws", () => {
    checkProperty(fc.property(fc.anything(), (value) => void parseTunnelFailure(value)));
  });
});
