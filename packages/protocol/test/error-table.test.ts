import { describe, expect, test } from "vitest";
import {
  encodeErrorEnvelope,
  ERROR_TABLE,
  isErrorCode,
  isProtocolError,
  ProtocolError,
} from "@moor/protocol";
import { verifies } from "@moor/testkit";

describe("the error table", () => {
  verifies("T3", "each type of error has its statuses", () => {
    const statuses: Readonly<Record<string, readonly number[]>> = {
      invalid_request_error: [400, 405, 406, 413, 415, 426],
      authentication_error: [401],
      permission_error: [403],
      not_found_error: [404],
      conflict_error: [409, 410, 421],
      rate_limit_error: [429],
      server_error: [500, 502, 503, 504],
    };
    for (const [code, row] of Object.entries(ERROR_TABLE)) {
      expect(statuses[row.type], code).toContain(row.status);
      expect(row.summary, code).toMatch(/^[A-Z].*\.$/);
    }
  });

  verifies("T11", "only what was certainly not handed out may be sent again", () => {
    for (const [code, row] of Object.entries(ERROR_TABLE)) {
      const mayRunTwice = row.status === 500 || row.status === 502 || row.status === 504;
      if (mayRunTwice) expect(row.retry, code).toBe("never");
      if (row.status === 503 || row.status === 429) expect(row.retry, code).not.toBe("never");
    }
  });

  test("codes are recognised as own keys only", () => {
    expect(isErrorCode("not_found")).toBe(true);
    expect(isErrorCode("toString")).toBe(false);
  });
});

describe("ProtocolError", () => {
  verifies("T3", "is written as message, type, code and what else it was given", () => {
    const error = new ProtocolError("invalid_request", {
      message: "limit is not an integer",
      param: "limit",
    });
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect(JSON.parse(encodeErrorEnvelope(error))).toEqual({
      error: {
        message: "limit is not an integer",
        type: "invalid_request_error",
        code: "invalid_request",
        param: "limit",
      },
    });
  });

  verifies("T3", "has the table's summary for a message, and no member it was not given", () => {
    const envelope = encodeErrorEnvelope(new ProtocolError("tunnel_not_found"));
    expect(envelope).toBe(
      '{"error":{"message":"There is no such tunnel.","type":"not_found_error","code":"tunnel_not_found"}}',
    );
  });

  verifies("T11", "carries the outcome of a call for its caller", () => {
    const error = new ProtocolError("command_outcome_unknown", { data: { outcome: "unknown" } });
    expect(JSON.parse(encodeErrorEnvelope(error))).toMatchObject({ error: { data: { outcome: "unknown" } } });
  });

  test("a correction is never written as an envelope", () => {
    expect(() => encodeErrorEnvelope(new ProtocolError("wrong_cluster"))).toThrow(RangeError);
  });

  test("is told from other errors by name and code", () => {
    expect(isProtocolError(new ProtocolError("forbidden"))).toBe(true);
    expect(isProtocolError(Object.assign(new Error("x"), { code: "forbidden" }))).toBe(false);
    expect(isProtocolError(undefined)).toBe(false);
  });
});
