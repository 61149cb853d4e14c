// The documents that are normative say what the code does.

import { expect, test } from "vitest";
import { verifies } from "@moor/testkit";
import { findErrorTableProblems } from "../../scripts/docs/error-docs.ts";
import { findLinkStateProblems } from "../../scripts/docs/link-state-docs.ts";
import { findBrokenLinks } from "../../scripts/docs/links.ts";
import { findNameProblems } from "../../scripts/docs/log-and-metric-names.ts";
import { readMarkdownFiles } from "../../scripts/docs/markdown-files.ts";
import { findMapProblems } from "../../scripts/docs/the-map.ts";

verifies(
  "T3",
  "one table in the documents tells code, status, type and whether to retry, as the code has it",
  () => {
    expect(findErrorTableProblems()).toEqual([]);
  },
);

verifies("L15", "one table in the documents tells why a link is not there, as the code has it", () => {
  expect(findLinkStateProblems()).toEqual([]);
});

test("the map of ARCHITECTURE.md names files that are there and every requirement that is due", () => {
  expect(findMapProblems()).toEqual([]);
});

test("links between the documents lead somewhere", () => {
  expect(findBrokenLinks(readMarkdownFiles())).toEqual([]);
});

test("the pages on logs and metrics name what the sources write, and nothing else", () => {
  expect(findNameProblems()).toEqual([]);
});
