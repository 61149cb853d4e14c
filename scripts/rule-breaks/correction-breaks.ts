// Breaks of the reader of corrections and command tokens: R6, R7, R20.

import { inFile, type RuleBreak } from "./rule-break.ts";

const correction = inFile("correction.ts");
const jsonScan = inFile("json-scan.ts");
const jsonString = inFile("json-string.ts");
const answer = inFile("poll-answer.ts");
const limits = inFile("limits.ts");

/** Breaks of the correction reader, the JSON scanner under it and the command-token check. */
export const CORRECTION_BREAKS: readonly RuleBreak[] = [
  correction("R6", "corrections on every status", "if (head.status !== 409)", "if (head.status < 0)"),
  answer(
    "R7",
    "every 4xx may correct",
    "if (head.status === 409) return classifyConflict(head,",
    "if (head.status >= 400) return classifyConflict({ ...head, status: 409 },",
  ),
  correction("R6", "no bound on the body", "body.length > CORRECTION_BODY_BYTES_MAX", "body.length < 0"),
  correction(
    "R6",
    "error twice",
    'onlyMember(scan.members, "error")',
    'scan.members.findLast((member) => member.key === "error")',
  ),
  correction(
    "R6",
    "code twice",
    'onlyMember(members, "code")',
    'members.findLast((member) => member.key === "code")',
  ),
  correction(
    "R6",
    "policy_revision twice",
    'onlyMember(members, "policy_revision")',
    'members.findLast((member) => member.key === "policy_revision")',
  ),
  correction("R6", "shard_token twice", "confirmations.length > 1", "confirmations.length < 0"),
  correction("R6", "any code", "!== CODE_WRONG_CLUSTER", "=== undefined"),
  correction("R6", "two token lines", "token === undefined || tokens.length > 1", "token === undefined"),
  correction("R6", "header names with case", "line.toLowerCase() === wanted", "line === name"),
  correction("R6", "comma in a token", "\\x21-\\x2b\\x2d-\\x7e]{1,4096}", "\\x21-\\x7e]{1,4096}"),
  correction("R6", "space in a token", "[\\x21-\\x2b\\x2d", "[\\x20-\\x2b\\x2d"),
  correction("R6", "empty token", "\\x7e]{1,4096}$", "\\x7e]{0,4096}$"),
  correction("R6", "4097 bytes of token", "{1,4096}", "{1,4097}"),
  correction("R6", "4095 bytes of token at most", "{1,4096}", "{1,4095}"),
  correction("R6", "token above 0x7e", "\\x2d-\\x7e]{1", "\\x2d-\\xff]{1"),
  correction("R6", "negative revision", "/^[0-9]{1,16}$/", "/^-?[0-9]{1,16}$/"),
  correction("R6", "revision with exponent", "/^[0-9]{1,16}$/", "/^[0-9e]{1,16}$/"),
  correction("R6", "revision with fraction", "/^[0-9]{1,16}$/", "/^[0-9.]{1,16}$/"),
  correction("R6", "revision above 2^53 - 1", "revision <= REVISION_MAX ?", "revision >= 0 ?"),
  limits("R6", "2^53 - 2 is the largest revision", "9_007_199_254_740_991", "9_007_199_254_740_990"),
  correction("R6", "revision as text", 'if (member?.kind !== "number")', 'if (member?.kind === "null")'),
  correction("R6", "body token not compared", "(member) => textOf(body, member) !== token", "() => false"),
  limits("R6", "nesting of 65", "CORRECTION_DEPTH_MAX = 64", "CORRECTION_DEPTH_MAX = 65"),
  limits("R6", "nesting of 63 at most", "CORRECTION_DEPTH_MAX = 64", "CORRECTION_DEPTH_MAX = 63"),
  limits("R6", "64 KiB + 1", "CORRECTION_BODY_BYTES_MAX = 65_536", "CORRECTION_BODY_BYTES_MAX = 65_537"),
  limits(
    "R6",
    "64 KiB - 1 at most",
    "CORRECTION_BODY_BYTES_MAX = 65_536",
    "CORRECTION_BODY_BYTES_MAX = 65_535",
  ),
  jsonScan("R6", "byte order mark", '=== 0xbf) return void fail(scan, "bom")', "=== 0xbf) scan.at = 3"),
  jsonScan(
    "R6",
    "something after the value",
    'if (scan.at < bytes.length) return void fail(scan, "trailing")',
    "if (scan.at < 0) return undefined",
  ),
  jsonScan(
    "R6",
    "keys compared before unescaping",
    "key: stringText(bytes, key.start, key.end)",
    "key: String.fromCharCode(...bytes.subarray(key.start + 1, key.end - 1))",
  ),
  jsonScan(
    "R6",
    "trailing comma in an object",
    "return close === CLOSE_ARRAY || scanKey(scan)",
    "if (bytes[scan.at] === close) continue;\n      return close === CLOSE_ARRAY || scanKey(scan)",
  ),
  jsonString("R6", "UTF-8 not checked", "scanMultibyte(cursor))", "((cursor.at += 1) > 0))"),
  jsonString("R6", "overlong UTF-8", "lead === 0xe0 ? 0xa0 :", "lead === 0xe0 ? 0x80 :"),
  jsonString("R6", "encoded surrogates", "lead === 0xed ? 0x9f :", "lead === 0xed ? 0xbf :"),
  jsonString("R6", "code points above U+10FFFF", "lead === 0xf4 ? 0x8f :", "lead === 0xf4 ? 0xbf :"),
  jsonString("R6", "control characters in strings", "fill(1, 0x20, 0x80)", "fill(1, 0x00, 0x80)"),
  correction("R20", "a space ends a command token", "|^[ \\t]|[ \\t]$/", "|[ \\t]/"),
  correction("R20", "line feeds in a command token", "\\x0a-\\x1f", "\\x0b-\\x1f"),
  correction("R20", "commas as in polling tokens", "|^[ \\t]|[ \\t]$/", "|^[ \\t]|[ \\t]$|,/"),
  correction(
    "R20",
    "characters counted, not bytes",
    "return new TextEncoder().encode(text).length <= COMMAND_TOKEN_BYTES_MAX;",
    "return true;",
  ),
  correction("R20", "lone surrogates", "|| !text.isWellFormed()", ""),
  limits(
    "R20",
    "4 KiB as for polling tokens",
    "COMMAND_TOKEN_BYTES_MAX = 8192",
    "COMMAND_TOKEN_BYTES_MAX = 4096",
  ),
];
