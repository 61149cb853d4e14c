// `npm run vectors:break`: breaks each rule of the pure machines once and requires that at least one vector notices.
//
// Each break patches one file in a copy of packages/protocol/src, imports the copy and replays all vectors against it.
// Exit 1 if a break survives, if its text is no longer found exactly once, or if the unbroken copy fails a vector.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { replayVectors } from "../test/conformance/replay-vectors.ts";
import type { ProtocolModule } from "../test/conformance/vector-terms.ts";
import { AGENT_WIRE_BREAKS } from "./rule-breaks/agent-wire-breaks.ts";
import { CAPABILITY_BREAKS } from "./rule-breaks/capability-breaks.ts";
import { CORRECTION_BREAKS } from "./rule-breaks/correction-breaks.ts";
import { DELAY_BREAKS } from "./rule-breaks/delay-breaks.ts";
import { POLL_ANSWER_BREAKS } from "./rule-breaks/poll-answer-breaks.ts";
import { POLL_ROUTING_BREAKS } from "./rule-breaks/poll-routing-breaks.ts";
import type { RuleBreak } from "./rule-breaks/rule-break.ts";

const sources = fileURLToPath(new URL("../packages/protocol/src", import.meta.url));

const RULE_BREAKS: readonly RuleBreak[] = [
  ...CAPABILITY_BREAKS,
  ...CORRECTION_BREAKS,
  ...POLL_ANSWER_BREAKS,
  ...POLL_ROUTING_BREAKS,
  ...DELAY_BREAKS,
  ...AGENT_WIRE_BREAKS,
];

/** What came of one break: the vectors that caught it, or why it could not be made. */
type Verdict =
  | { readonly kind: "caught"; readonly by: readonly string[] }
  | { readonly kind: "survived" }
  | { readonly kind: "not-applicable"; readonly why: string };

async function main(): Promise<number> {
  const folder = mkdtempSync(path.join(tmpdir(), "moor-break-"));
  try {
    writeFileSync(path.join(folder, "package.json"), '{"type":"module"}');
    const unbroken = await failuresOf(copySources(folder, "unbroken"));
    if (unbroken.length > 0) {
      console.error(`the unbroken sources fail ${unbroken.join(", ")}`);
      return 1;
    }
    return await breakAll(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function breakAll(folder: string): Promise<number> {
  let badCount = 0;
  for (const [index, rule] of RULE_BREAKS.entries()) {
    const verdict = await tryBreak(folder, `break-${index}`, rule);
    if (verdict.kind !== "caught") badCount += 1;
    console.log(`${rule.rule.padEnd(4)} ${rule.name.padEnd(52)} ${describe(verdict)}`);
  }
  console.log(`${RULE_BREAKS.length - badCount} breaks caught, ${badCount} not`);
  return badCount > 0 ? 1 : 0;
}

async function tryBreak(folder: string, name: string, rule: RuleBreak): Promise<Verdict> {
  const copy = copySources(folder, name);
  const file = path.join(copy, rule.file);
  const parts = readFileSync(file, "utf8").split(rule.find);
  if (parts.length !== 2)
    return { kind: "not-applicable", why: `text found ${parts.length - 1} times in ${rule.file}` };
  writeFileSync(file, parts.join(rule.replace));
  try {
    const by = await failuresOf(copy);
    return by.length > 0 ? { kind: "caught", by } : { kind: "survived" };
  } catch (thrown) {
    // A copy that does not even load proves nothing about the vectors.
    return { kind: "not-applicable", why: `the broken copy does not load: ${String(thrown)}` };
  }
}

function copySources(folder: string, name: string): string {
  const copy = path.join(folder, name);
  cpSync(sources, copy, { recursive: true });
  return copy;
}

/** Ids of the vectors that a copy fails. */
async function failuresOf(copy: string): Promise<readonly string[]> {
  const protocol = (await import(pathToFileURL(path.join(copy, "index.ts")).href)) as ProtocolModule;
  return replayVectors(protocol)
    .filter((result) => result.failure !== undefined)
    .map((result) => result.id);
}

function describe(verdict: Verdict): string {
  switch (verdict.kind) {
    case "caught":
      return `${String(verdict.by.length).padStart(3)}: ${verdict.by.slice(0, 3).join(", ")}${verdict.by.length > 3 ? ", …" : ""}`;
    case "survived":
      return "SURVIVED: no vector fails";
    case "not-applicable":
      return `NOT APPLICABLE: ${verdict.why}`;
  }
}

process.exitCode = await main();
