import { readFileSync } from "node:fs";
import { AGENT_VERSION } from "@moor/client";
import { verifies } from "@moor/testkit";
import { expect } from "vitest";

verifies("T16", "the version told on the wire is the package's own", () => {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  expect(AGENT_VERSION).toBe((JSON.parse(text) as { version: string }).version);
});
