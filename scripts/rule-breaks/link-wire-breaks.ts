// Breaks of what goes over a link: L4, L5, L7, L12, L13, L27–L32.

import { inFile, type RuleBreak } from "./rule-break.ts";

const host = inFile("shard-host.ts");
const spread = inFile("restart-spread.ts");
const token = inFile("link-token.ts");
const names = inFile("link-names.ts");
const record = inFile("link-record.ts");
const frames = inFile("link-frames.ts");
const members = inFile("link-frame-members.ts");
const signature = inFile("link-signature.ts");
const limits = inFile("link-limits.ts");

/** Breaks of hosts, spreads, tokens, records, frames and signed bytes. */
export const LINK_WIRE_BREAKS: readonly RuleBreak[] = [
  host("L4", "the dot may be missing", "host.endsWith(`.${base}`)", "host.endsWith(base)"),
  host(
    "L4",
    "any number of labels",
    "LABEL.test(host.slice(0, -(base.length + 1)))",
    'isName(host.slice(0, -(base.length + 1)) + "")',
  ),
  host(
    "L4",
    "case is ignored",
    "if (host === base) return true;",
    "host = host.toLowerCase();\n  if (host === base) return true;",
  ),
  host(
    "L4",
    "blanks are trimmed",
    "if (host === base) return true;",
    "host = host.trim();\n  if (host === base) return true;",
  ),
  host(
    "L4",
    "a final dot is forgiven",
    "if (host === base) return true;",
    'host = host.replace(/\\.$/, "");\n  if (host === base) return true;',
  ),
  host(
    "L4",
    "a port is forgiven",
    "if (host === base) return true;",
    'host = host.replace(/:\\d+$/, "");\n  if (host === base) return true;',
  ),
  host(
    "L4",
    "the base itself is refused",
    "if (host === base) return true;",
    "if (host === base) return false;",
  ),
  host("L4", "underscores in a label", "[a-z0-9-]{0,61}[a-z0-9])?$/;", "[a-z0-9_-]{0,61}[a-z0-9])?$/;"),
  host("L4", "hyphens at the end of a label", "{0,61}[a-z0-9])?$/;", "{0,62})?$/;"),
  host("L4", "labels of 64", "{0,61}[a-z0-9])?$/;", "{0,62}[a-z0-9])?$/;"),
  host("L4", "labels of 62 at most", "{0,61}[a-z0-9])?$/;", "{0,60}[a-z0-9])?$/;"),
  host("L4", "`$` forgives a line feed", "[a-z0-9])?$/;", "[a-z0-9])?\\n?$/;"),
  host("L4", "addresses have shards", "if (isAddress(base) || !host", "if (!host"),
  host("L4", "no bound on a shard's host", "if (host.length > PUBLIC_HOST_BYTES_MAX) return false;", ""),
  host("L4", "no bound on a base", "if (text.length > PUBLIC_HOST_BYTES_MAX) return undefined;", ""),
  host("L4", "numeric names as base", '&& !NUMERIC.test(labels.at(-1) ?? "")', ""),
  host("L4", "octal addresses as base", "(0|[1-9][0-9]{0,2})", "[0-9]{1,3}"),
  host("L4", "addresses above 255 as base", "&& Number(part) <= 255", ""),
  limits("L4", "hosts of 124 bytes", "PUBLIC_HOST_BYTES_MAX = 123", "PUBLIC_HOST_BYTES_MAX = 124"),
  spread("L5", "parsed as numbers are", "/^[0-9]+$/.test(reason) ?", "!Number.isNaN(Number(reason)) ?"),
  spread(
    "L5",
    "the leading digits are read",
    "/^[0-9]+$/.test(reason) ? clampSpreadMs(Number(reason))",
    "/^[0-9]+/.test(reason) ? clampSpreadMs(Number.parseInt(reason))",
  ),
  spread("L5", "read line by line", "/^[0-9]+$/", "/^[0-9]+$/m"),
  spread(
    "L5",
    "0 means the default",
    "? clampSpreadMs(Number(reason))",
    "? clampSpreadMs(Number(reason) || 5000)",
  ),
  limits("L5", "0 stays 0", "SPREAD_MS_MIN = 1_000", "SPREAD_MS_MIN = 0"),
  limits("L5", "above a minute", "SPREAD_MS_MAX = 60_000", "SPREAD_MS_MAX = 60_001"),
  limits("L5", "another default", "SPREAD_MS_DEFAULT = 5_000", "SPREAD_MS_DEFAULT = 1_000"),
  token("L7", "a secret may be empty", "/^[0-9A-Za-z_-]+$/", "/^[0-9A-Za-z_-]*$/"),
  token("L7", "a secret may hold dots", "/^[0-9A-Za-z_-]+$/", "/^[0-9A-Za-z_.-]+$/"),
  token("L7", "no bound", "|| text.length > LINK_TOKEN_BYTES_MAX", ""),
  token("L7", "blanks are trimmed", "text.slice(dot + 1)", "text.slice(dot + 1).trim()"),
  limits("L7", "255 bytes at most", "LINK_TOKEN_BYTES_MAX = 256", "LINK_TOKEN_BYTES_MAX = 255"),
  names("L28", "upper-case homes", "/^[a-z0-9][a-z0-9_-]{0,63}$/", "/^[a-z0-9][a-z0-9_-]{0,63}$/i"),
  names("L28", "homes of 65", "[a-z0-9_-]{0,63}$/", "[a-z0-9_-]{0,64}$/"),
  names("L28", "homes that start with a hyphen", "/^[a-z0-9][a-z0-9_-]{0,63}$/", "/^[a-z0-9_-]{1,64}$/"),
  names("L28", "nonces with spare bits", "{42}[AEIMQUYcgkosw048]", "{43}"),
  names("L28", "signatures with spare bits", "{85}[AQgw]", "{86}"),
  names(
    "L28",
    "generations with leading zeros",
    "/^(0|[1-9][0-9]{0,15})$/.test(text)",
    "/^[0-9]{1,16}$/.test(text)",
  ),
  names("L28", "generations above 2^53", "Number.isSafeInteger(Number(text)) ?", "text.length < 17 ?"),
  record(
    "L12",
    "unknown members are dropped",
    "if (!KNOWN.includes(member.key)) unknownMembers.push",
    'if (!KNOWN.includes(member.key)) [""].push',
  ),
  record("L13", "any version", 'known.get("v") !== 1 ||', ""),
  record("L13", "members twice", "else if (known.has(member.key)) return undefined;", ""),
  record(
    "L13",
    "hosts of any type",
    'if (known.has("host") && typeof host !== "string") return undefined;',
    "",
  ),
  frames(
    "L27",
    "no bound on a frame",
    "if (bytes.length > LINK_FRAME_BYTES_MAX) return",
    "if (bytes.length < 0) return",
  ),
  frames(
    "L27",
    "no bound on data",
    'name === "data" && end - start > dataBytesMax(t as LinkFrame["t"])',
    'name === "data" && end < start',
  ),
  frames(
    "L27",
    "the first of two kinds",
    'if (others.length > 0) return malformed("member-twice", "t");',
    "",
  ),
  frames(
    "L31",
    "the first of two members",
    "if (found.length > 1) return malformed",
    "if (found.length > 9) return malformed",
  ),
  frames("L27", "unknown kinds are malformed", 'return { kind: "ignored" };', 'return malformed("no-kind");'),
  frames(
    "L27",
    "kinds objects have by themselves",
    "Object.hasOwn(kinds, t) ? kinds[t] : undefined",
    "kinds[t]",
  ),
  frames(
    "L31",
    "data is written anew",
    "if (reader.isRaw) return raw;",
    "if (reader.isRaw) return JSON.stringify(JSON.parse(raw));",
  ),
  frames(
    "L31",
    "now as large as other data",
    't === "now" ? NOW_BYTES_MAX :',
    't === "hello" ? NOW_BYTES_MAX :',
  ),
  frames("L28", "lists of anything", 'element.kind !== "string"', 'element.kind === "null"'),
  limits("L27", "64 KiB + 1 of data", "LINK_DATA_BYTES_MAX = 65_536", "LINK_DATA_BYTES_MAX = 65_537"),
  limits("L27", "64 KiB - 1 of data at most", "LINK_DATA_BYTES_MAX = 65_536", "LINK_DATA_BYTES_MAX = 65_535"),
  limits("L27", "a frame of one byte more", "LINK_FRAME_BYTES_MAX = 69_632", "LINK_FRAME_BYTES_MAX = 69_633"),
  limits("L31", "4 KiB - 1 of now at most", "NOW_BYTES_MAX = 4_096", "NOW_BYTES_MAX = 4_095"),
  members(
    "L28",
    "any version of hello",
    "value === LINK_VERSION ? LINK_VERSION : undefined",
    "value === undefined ? undefined : LINK_VERSION",
  ),
  members(
    "L31",
    "fractions of a millisecond",
    "Number.isSafeInteger(value) ? readMs(value) : undefined",
    "readMs(value)",
  ),
  members("L31", "negative times", "(value as number) >= 0", "(value as number) >= -1"),
  members(
    "L31",
    "any outcome",
    'value === "expired" ? value',
    'value === "expired" || value === "done" ? value',
  ),
  members(
    "L31",
    "any presence",
    'value === "unknown" ? value : undefined;\n}\n',
    'value === "unknown" || value === "away" ? value : undefined;\n}\n',
  ),
  members("L29", "a host of two lines", "/^[\\x21-\\x7e]{1,123}$/.test(text)", "/^[^]{1,123}$/.test(text)"),
  members("L30", "apps without a token", "token: need(", "token: may("),
  members("L28", "spreads are demanded", "spread_ms: may(", "spread_ms: need("),
  signature("L29", "no host", "linesOf([PROOF, host, home,", "linesOf([PROOF, home,"),
  signature(
    "L29",
    "nonces the other way round",
    "clientNonce, serviceNonce]);",
    "serviceNonce, clientNonce]);",
  ),
  signature("L29", "a last line feed", 'lines.join("\\n")', 'lines.join("\\n") + "\\n"'),
  signature(
    "L29",
    "the next key is not signed",
    "nextKey === undefined ? lines : [...lines, nextKey]",
    "lines",
  ),
  signature(
    "L29",
    "one name for both",
    'const HELLO_OK = "moor-link-hello-ok-v1"',
    'const HELLO_OK = "moor-link-proof-v1"',
  ),
  signature("L28", "a key id of another length", "subarray(0, 12)", "subarray(0, 15)"),
];
