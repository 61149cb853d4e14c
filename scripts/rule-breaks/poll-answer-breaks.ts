// Breaks of the reading of a poll's ending: R11, R14, R17, R18.

import { inFile, type RuleBreak } from "./rule-break.ts";

const answer = inFile("poll-answer.ts");

/** Breaks of the classification of a poll ending. */
export const POLL_ANSWER_BREAKS: readonly RuleBreak[] = [
  answer(
    "R11",
    "201 is a success",
    "head.status === 200) return",
    "head.status === 200 || head.status === 201) return",
  ),
  answer(
    "R11",
    "204 is no success",
    'if (head.status === 204) return { kind: "success", commands: [] };',
    "",
  ),
  answer(
    "R14",
    "any 200 is a success",
    'commands === undefined ? { kind: "ordinary-error" } : { kind: "success", commands }',
    '{ kind: "success", commands: commands ?? [] }',
  ),
  answer("R14", "408 does not count", "head.status === 408 ||", ""),
  answer("R14", "5xx does not count", "head.status >= 500 && head.status <= 599", "head.status === 0"),
  answer("R14", "429 counts", "head.status === 408 ||", "head.status === 408 || head.status === 429 ||"),
  answer("R14", "401 counts", "head.status === 408 ||", "head.status === 408 || head.status === 401 ||"),
  answer("R14", "a cut body does not count", ' || ending.bodyEnding === "cut"', ""),
  answer("R14", "cancellation counts as a failure", 'if (isCancelled) return { kind: "cancelled" };', ""),
  answer(
    "R18",
    "a redirect counts",
    "head.status === 408 ||",
    "head.status === 408 || (head.status >= 300 && head.status < 400) ||",
  ),
  answer(
    "R17",
    "Retry-After only on 429 and 503",
    "if (head.status === 200 || head.status === 204)",
    "if (head.status !== 429 && head.status !== 503)",
  ),
  answer("R17", "Retry-After without the answer's Date", "onlyValue(head, HEADER.date)", "undefined"),
];
