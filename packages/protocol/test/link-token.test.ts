import { expect } from "vitest";
import { parseLinkToken } from "@moor/protocol";
import { verifies } from "@moor/testkit";

verifies("L7", "a token is a home and a secret, split at the first dot", () => {
  expect(parseLinkToken("villa-1.moor_app_aZ9_-")).toEqual({ home: "villa-1", secret: "moor_app_aZ9_-" });
  const longest = `villa.${"s".repeat(250)}`;
  expect(parseLinkToken(longest)).toEqual({ home: "villa", secret: "s".repeat(250) });
});

verifies(
  "L7",
  "a token without a dot, with an empty part, above 256 bytes or with other characters is none",
  () => {
    const bad = [
      "",
      ".",
      "villa",
      "villa.",
      ".secret",
      "villa.a.b",
      "villa.a b",
      "villa.\u00e9",
      "villa.a\n",
      "Villa.a",
      "-v.a",
    ];
    for (const text of [...bad, " villa.a", `villa.${"s".repeat(251)}`, `${"v".repeat(65)}.a`]) {
      expect(parseLinkToken(text), JSON.stringify(text)).toBeUndefined();
    }
  },
);
