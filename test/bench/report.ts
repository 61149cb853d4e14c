// The bench's figures as a table for people and as JSON for comparison. Ratios come first: they travel between machines,
// absolute numbers do not.

import { cpus } from "node:os";
import type { CallFigures, Route } from "./call-bench.ts";
import type { CommandFigures } from "./command-bench.ts";
import type { MemoryFigures, UnitMemory } from "./memory-bench.ts";
import type { MoveRateRun } from "../prove/move-rate-scenario.ts";
import type { OwnerFigures } from "./owner-bench.ts";

/** Bytes a unit under which a difference is noise. */
const NOISE_BYTES = 512;

export interface BenchReport {
  readonly machine: {
    readonly node: string;
    readonly cores: number;
    readonly cpu: string;
    readonly date: string;
  };
  /** Moor ÷ the other, per concurrency. */
  readonly ratios: readonly {
    readonly concurrency: number;
    readonly callsPerSecondToProxy: number;
    readonly p50ToProxy: number;
    readonly addedCpuToProxy: number;
  }[];
  readonly waitingPollToBareServer: number;
  readonly calls: readonly CallFigures[];
  /** The same call where its entry is the owner's node, and where it is not. */
  readonly owners: readonly OwnerFigures[];
  /** By directory; only those that could be started here. */
  readonly moves: readonly ({ readonly directory: string } & MoveRateRun)[];
  /** Commands over links; none where there is no PostgreSQL. */
  readonly commands: readonly CommandFigures[];
  readonly memory: MemoryFigures;
}

/** Everything that was measured. */
export type BenchFigures = Pick<BenchReport, "calls" | "owners" | "moves" | "commands" | "memory">;

/** Puts the figures together with what the machine is. */
export function createReport({ calls, owners, moves, commands, memory }: BenchFigures): BenchReport {
  const concurrencies = [...new Set(calls.map((figures) => figures.concurrency))];
  const of = (route: Route, concurrency: number) =>
    calls.find((figures) => figures.route === route && figures.concurrency === concurrency);
  const ratio = (above: number | undefined, below: number | undefined) =>
    rounded((above ?? Number.NaN) / (below ?? Number.NaN), 2);
  return {
    machine: {
      node: process.version,
      cores: cpus().length,
      cpu: cpus()[0]?.model ?? "unknown",
      date: new Date().toISOString().slice(0, 10),
    },
    ratios: concurrencies.map((concurrency) => {
      const moor = of("moor", concurrency);
      const proxy = of("proxy", concurrency);
      return {
        concurrency,
        callsPerSecondToProxy: ratio(moor?.callsPerSecond, proxy?.callsPerSecond),
        p50ToProxy: ratio(moor?.p50Ms, proxy?.p50Ms),
        addedCpuToProxy: ratio(moor?.addedCpuUs, proxy?.addedCpuUs),
      };
    }),
    waitingPollToBareServer: ratio(memory.waitingPoll.rssBytes, memory.bareParkedRequest.rssBytes),
    calls: calls.map(roundFigures),
    owners: owners.map(roundFigures),
    moves,
    commands: commands.map(roundFigures),
    memory,
  };
}

function roundFigures<Figures extends Omit<CallFigures, "route">>(figures: Figures): Figures {
  return {
    ...figures,
    callsPerSecond: Math.round(figures.callsPerSecond),
    p50Ms: rounded(figures.p50Ms, 2),
    p99Ms: rounded(figures.p99Ms, 2),
    addedCpuUs: Math.round(figures.addedCpuUs),
  };
}

/** The report as Markdown that reads well in a terminal too. */
export function renderReport(report: BenchReport): string {
  const { machine, ratios, calls, owners, moves, commands, memory } = report;
  return [
    `Node ${machine.node}, ${machine.cores} cores (${machine.cpu}), ${machine.date}`,
    "",
    "Moor ÷ bare reverse proxy:",
    "",
    table(
      ["concurrency", "calls/s", "p50", "added CPU"],
      ratios.map((row) => [row.concurrency, row.callsPerSecondToProxy, row.p50ToProxy, row.addedCpuToProxy]),
    ),
    "",
    callTable(calls),
    "",
    "Two nodes on one machine, seen from the node that owns the tunnel:",
    "",
    callTable(owners),
    "",
    "Moves a second:",
    "",
    table(
      ["directory", "one order at a time", "eight at a time", "a job", "tunnels"],
      moves.map((row) => [row.directory, row.onePerS, row.eightPerS, row.jobPerS, row.tunnels]),
    ),
    "",
    ...(commands.length === 0
      ? []
      : [
          "Commands over links, app → box → app, seen from the owner of the home:",
          "",
          callTable(commands),
          "",
        ]),
    `Memory, after garbage collection (${memory.tunnels} tunnels, ${memory.polls} waiting polls):`,
    "",
    table(
      ["one more", "costs"],
      [
        ["idle tunnel", `${kib(memory.idleTunnel)}, ${memory.idleTunnel.diskBytes} bytes on disk`],
        ["waiting poll, one of many on its tunnel", kib(memory.waitingPoll)],
        ["waiting poll, on a tunnel of its own", kib(memory.waitingPollOfOwnTunnel)],
        ["parked request, bare node:http", kib(memory.bareParkedRequest)],
      ],
    ),
  ].join("\n");
}

function callTable(rows: readonly (CallFigures | OwnerFigures | CommandFigures)[]): string {
  return table(
    ["route", "concurrency", "calls/s", "p50 ms", "p99 ms", "added CPU µs/call", "errors"],
    rows.map((row) => [
      row.route,
      row.concurrency,
      row.callsPerSecond,
      row.p50Ms.toFixed(2),
      row.p99Ms.toFixed(2),
      row.addedCpuUs,
      row.errors,
    ]),
  );
}

/** Differences of single nodes that are below what two starts of the same node differ by are told as a bound. */
function kib({ rssBytes, heapBytes }: UnitMemory): string {
  if (Math.abs(rssBytes) < NOISE_BYTES) return "under 0.5 KiB resident";
  return `${(rssBytes / 1024).toFixed(1).padStart(6)} KiB resident, ${(heapBytes / 1024).toFixed(1)} KiB of it live heap`;
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, head.map(() => "---"), ...rows.map((row) => row.map(String))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  return cells
    .map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`)
    .join("\n");
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
