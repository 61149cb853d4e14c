import { expect, test } from "vitest";
import { isSameId } from "../src/jsonrpc-message.ts";

test("ids are compared as values, without rounding big integers together", () => {
  expect(isSameId('"a"', '"\\u0061"')).toBe(true);
  expect(isSameId("1", "1.0")).toBe(true);
  expect(isSameId("9007199254740993", "9007199254740993")).toBe(true);
  expect(isSameId("9007199254740993", "9007199254740992")).toBe(false);
  expect(isSameId("1", '"1"')).toBe(false);
  expect(isSameId("null", "0")).toBe(false);
});
