// Breaks of the capability parser: R2.

import { inFile, type RuleBreak } from "./rule-break.ts";

const capabilities = inFile("capabilities.ts");
const limits = inFile("limits.ts");

/** Breaks of the capability parser. */
export const CAPABILITY_BREAKS: readonly RuleBreak[] = [
  capabilities("R2", "lines join with comma and space", 'fieldLines.join(",")', 'fieldLines.join(", ")'),
  capabilities("R2", "only the first line is read", "fieldLines.join", "fieldLines.slice(0, 1).join"),
  capabilities("R2", "no bound on the total", "joined.length > CAPABILITIES_BYTES_MAX", "joined.length < 0"),
  capabilities(
    "R2",
    "members counted after deduplication",
    "if (names.length >",
    "if (new Set(names).size >",
  ),
  capabilities(
    "R2",
    "no bound on a name",
    "name.length <= CAPABILITY_NAME_BYTES_MAX &&",
    "name.length >= 0 &&",
  ),
  capabilities(
    "R2",
    "an invalid member is only left out",
    "names.every(isCapabilityName) ? new Set(names) : NONE",
    "new Set(names.filter(isCapabilityName))",
  ),
  capabilities(
    "R2",
    "names compared without case",
    "fieldLines.join",
    "fieldLines.map((line) => line.toLowerCase()).join",
  ),
  capabilities(
    "R2",
    "every kind of blank is trimmed",
    'text.replace(/^[ \\t]+/, "").replace(/[ \\t]+$/, "")',
    "text.trim()",
  ),
  capabilities("R2", "tabs are not trimmed", "replace(/^[ \\t]+/", "replace(/^[ ]+/"),
  capabilities("R2", "slash in a name", "~0-9A-Za-z]", "~/0-9A-Za-z]"),
  capabilities("R2", "empty members are violations", 'filter((name) => name !== "")', "filter(() => true)"),
  limits("R2", "4097 bytes", "CAPABILITIES_BYTES_MAX = 4096", "CAPABILITIES_BYTES_MAX = 4097"),
  limits("R2", "65 names", "CAPABILITIES_COUNT_MAX = 64", "CAPABILITIES_COUNT_MAX = 65"),
  limits("R2", "129 bytes of a name", "CAPABILITY_NAME_BYTES_MAX = 128", "CAPABILITY_NAME_BYTES_MAX = 129"),
];
