// `npm run vectors:break`: breaks each rule of the pure machines once and requires that at least one vector notices.
//
// Each break patches one file of packages/protocol/src, imports that with what depends on it, and replays the vectors of its
// plane. Exit 1 if a break survives, if its text is no longer found exactly once, or if the unbroken copy fails a vector.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { replayLinkVectors } from "../test/conformance/replay-link-vectors.ts";
import { replayPollVectors, replayVectors } from "../test/conformance/replay-vectors.ts";
import type { ProtocolModule } from "../test/conformance/vector-terms.ts";
import { AGENT_WIRE_BREAKS } from "./rule-breaks/agent-wire-breaks.ts";
import { CAPABILITY_BREAKS } from "./rule-breaks/capability-breaks.ts";
import { CORRECTION_BREAKS } from "./rule-breaks/correction-breaks.ts";
import { DELAY_BREAKS } from "./rule-breaks/delay-breaks.ts";
import { LINK_FOLLOWER_BREAKS } from "./rule-breaks/link-follower-breaks.ts";
import { LINK_WIRE_BREAKS } from "./rule-breaks/link-wire-breaks.ts";
import { POLL_ANSWER_BREAKS } from "./rule-breaks/poll-answer-breaks.ts";
import { POLL_ROUTING_BREAKS } from "./rule-breaks/poll-routing-breaks.ts";
import type { RuleBreak } from "./rule-breaks/rule-break.ts";

const folderOfSources = fileURLToPath(new URL("../packages/protocol/src", import.meta.url));

/** Sources by file name. */
const SOURCES: ReadonlyMap<string, string> = new Map(
  readdirSync(folderOfSources).map((file) => [file, readFileSync(path.join(folderOfSources, file), "utf8")]),
);

const RULE_BREAKS: readonly RuleBreak[] = [
  ...CAPABILITY_BREAKS,
  ...CORRECTION_BREAKS,
  ...POLL_ANSWER_BREAKS,
  ...POLL_ROUTING_BREAKS,
  ...DELAY_BREAKS,
  ...AGENT_WIRE_BREAKS,
  ...LINK_WIRE_BREAKS,
  ...LINK_FOLLOWER_BREAKS,
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
    writeCopy(path.join(folder, UNBROKEN), SOURCES);
    const unbroken = failuresOf(await load(path.join(folder, UNBROKEN)), replayVectors);
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
  const parts = SOURCES.get(rule.file)?.split(rule.find) ?? [];
  if (parts.length !== 2)
    return { kind: "not-applicable", why: `text found ${parts.length - 1} times in ${rule.file}` };
  const changed = new Map([...dependentsOf(rule.file)].map((file) => [file, SOURCES.get(file) ?? ""]));
  changed.set(rule.file, parts.join(rule.replace));
  writeCopy(path.join(folder, name), changed);
  try {
    const by = failuresOf(await load(path.join(folder, name)), replayOfPlane(rule.file));
    return by.length > 0 ? { kind: "caught", by } : { kind: "survived" };
  } catch (thrown) {
    // A copy that does not even load proves nothing about the vectors.
    return { kind: "not-applicable", why: `the broken copy does not load: ${String(thrown)}` };
  }
}

const UNBROKEN = "unbroken";

const IMPORT = /from "\.\/([a-z0-9-]+\.ts)"/g;

/** Writes sources to a folder of their own; what they import and is not among them is the unbroken one. */
function writeCopy(copy: string, files: ReadonlyMap<string, string>): void {
  mkdirSync(copy);
  for (const [file, source] of files) {
    const text = source.replaceAll(IMPORT, (whole, imported: string) =>
      files.has(imported) ? whole : `from "../${UNBROKEN}/${imported}"`,
    );
    writeFileSync(path.join(copy, file), text);
  }
}

/** A file and all that imports it, directly or not; index.ts always does. */
function dependentsOf(file: string): ReadonlySet<string> {
  const found = new Set([file]);
  for (const one of found) {
    for (const [importer, source] of SOURCES) {
      if ([...source.matchAll(IMPORT)].some((match) => match[1] === one)) found.add(importer);
    }
  }
  return found;
}

async function load(copy: string): Promise<ProtocolModule> {
  return (await import(pathToFileURL(path.join(copy, "index.ts")).href)) as ProtocolModule;
}

/** The replay whose vectors have to notice a break of this file. */
function replayOfPlane(file: string): typeof replayVectors {
  return /^(link-|kept-host|shard-host|restart-spread)/.test(file) ? replayLinkVectors : replayPollVectors;
}

/** Ids of the vectors that a copy fails. */
function failuresOf(protocol: ProtocolModule, replay: typeof replayVectors): readonly string[] {
  return replay(protocol)
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
