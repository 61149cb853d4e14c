// Compares what apps were told of their commands with what boxes did.
//
// Spec: L20, L31, L33.
// I1  An outcome is honest when the ledger bears it out: a result was acted on, `not_delivered` and `expired` were not.
//     `unknown` is honest either way; it must only be rare and, asked again, end.
// I2  A verdict is about counts; times are reported, never judged here.

/** What one asking of a command ended in, as the app saw it. */
export type AskEnding =
  /** `did`: the id that the box says it acted on; `turn`: how many commands it had acted on by then. */
  | { readonly kind: "result"; readonly did: string; readonly turn: number }
  | { readonly kind: "unknown" | "not_delivered" | "expired" }
  /** No outcome at all: the app could not reach anybody. */
  | { readonly kind: "broken"; readonly fault: string };

/** One asking: when the app asked, by its wall clock, and what it was told. */
export interface Ask {
  readonly askedAtMs: number;
  readonly ending: AskEnding;
}

/** A command with everything its app was told, in order: it asks again by the same id. */
export interface CommandRecord {
  readonly id: string;
  readonly home: string;
  /** At least one. */
  readonly asks: readonly Ask[];
  /** From the first asking to the last ending. Milliseconds. */
  readonly tookMs: number;
}

/** One act of a box, by the wall clock of the same machine. */
export interface BoxAct {
  readonly id: string;
  readonly home: string;
  readonly atMs: number;
}

/** What became of all commands. */
export interface CommandVerdict {
  readonly commands: number;
  /** Commands whose last word is a result. Count. */
  readonly results: number;
  /** Commands that were acted on more than once. Count. */
  readonly actedTwice: number;
  /** Results of commands in no ledger. Count. */
  readonly resultsUnacted: number;
  /** Acted on before any asking that did not end as `not_delivered` or `expired`. Count. */
  readonly deniedAndActed: number;
  /** Acted on by the box of another home. Count. */
  readonly actedElsewhere: number;
  /** Results of another command, or another result when asked again. Count. */
  readonly foreignResults: number;
  /** Askings by how they ended. */
  readonly endings: Readonly<Record<string, number>>;
  /** Commands that were unknown at first and whose result came by asking again. Count. */
  readonly resultsByAskingAgain: number;
  /** Commands whose last word is `unknown` or nothing. Count. */
  readonly leftUnknown: number;
  /** Up to five of them with what their apps were told: `c-7: unknown ×2, not_delivered, unknown`. */
  readonly leftUnknownExamples: readonly string[];
  readonly latency: { readonly p50Ms: number; readonly p99Ms: number; readonly slowestMs: number };
}

/** Judges `records` by `acts`; acts on commands that are in no record are of another run. */
export function judgeCommands(records: readonly CommandRecord[], acts: readonly BoxAct[]): CommandVerdict {
  const homeOf = new Map(records.map(({ id, home }) => [id, home]));
  const acted = new Map<string, number[]>();
  let actedElsewhere = 0;
  for (const { id, home, atMs } of acts) {
    if (!homeOf.has(id)) continue;
    acted.set(id, [...(acted.get(id) ?? []), atMs]);
    if (homeOf.get(id) !== home) actedElsewhere += 1;
  }
  const endings: Record<string, number> = {};
  for (const { ending } of records.flatMap(({ asks }) => asks)) {
    endings[nameOf(ending)] = (endings[nameOf(ending)] ?? 0) + 1;
  }
  const results = records.filter((record) => lastWord(record) === "result");
  const left = records.filter((record) => ["unknown", "broken"].includes(lastWord(record)));
  return {
    commands: records.length,
    results: results.length,
    actedTwice: [...acted.values()].filter(({ length }) => length > 1).length,
    resultsUnacted: results.filter(({ id }) => !acted.has(id)).length,
    deniedAndActed: records.filter((record) => isDeniedAct(record, acted.get(record.id) ?? [])).length,
    actedElsewhere,
    foreignResults: records.filter(isForeign).length,
    endings,
    resultsByAskingAgain: results.filter(({ asks }) => asks[0]?.ending.kind === "unknown").length,
    leftUnknown: left.length,
    leftUnknownExamples: left.slice(0, 5).map(storyOf),
    latency: latencyOf(records),
  };
}

/** The counts of a verdict that say whether a promise was kept: all 0 is perfect. */
export function commandFaultsOf(verdict: CommandVerdict): Readonly<Record<string, number>> {
  const { actedTwice, resultsUnacted, deniedAndActed, actedElsewhere, foreignResults } = verdict;
  return { actedTwice, resultsUnacted, deniedAndActed, actedElsewhere, foreignResults };
}

/** A verdict without a fault. */
export const NO_COMMAND_FAULTS = {
  actedTwice: 0,
  resultsUnacted: 0,
  deniedAndActed: 0,
  actedElsewhere: 0,
  foreignResults: 0,
} as const;

/** What an app was told, runs of the same word counted. */
function storyOf({ id, asks }: CommandRecord): string {
  const runs: { name: string; count: number }[] = [];
  for (const { ending } of asks) {
    const name = nameOf(ending);
    const last = runs.at(-1);
    if (last?.name === name) last.count += 1;
    else runs.push({ name, count: 1 });
  }
  return `${id}: ${runs.map(({ name, count }) => (count === 1 ? name : `${name} ×${count}`)).join(", ")}`;
}

function nameOf(ask: AskEnding): string {
  return ask.kind === "broken" ? `broken: ${ask.fault}` : ask.kind;
}

function lastWord({ asks }: CommandRecord): AskEnding["kind"] {
  return asks.at(-1)?.ending.kind ?? "broken";
}

function isDeniedAct({ asks }: CommandRecord, actedAtMs: readonly number[]): boolean {
  const open = asks.find(({ ending: { kind } }) => kind !== "not_delivered" && kind !== "expired");
  return actedAtMs.some((atMs) => atMs < (open?.askedAtMs ?? Infinity));
}

function isForeign({ id, asks }: CommandRecord): boolean {
  const turns = new Set<number>();
  for (const { ending } of asks) {
    if (ending.kind !== "result") continue;
    if (ending.did !== id) return true;
    turns.add(ending.turn);
  }
  return turns.size > 1;
}

function latencyOf(records: readonly CommandRecord[]): CommandVerdict["latency"] {
  const sorted = records.map(({ tookMs }) => tookMs).sort((one, other) => one - other);
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10;
  return { p50Ms: at(0.5), p99Ms: at(0.99), slowestMs: at(1) };
}
