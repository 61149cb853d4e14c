// What `moor drain` prints: a forecast with its arrivals as a small chart, and the report of a restart.

import type { ArrivalForecast, Arrivals, DrainForecast, DrainReport } from "@moor/server/drains";

/** Most lines of a chart. Count. */
const CHART_LINES_MAX = 20;
/** Wait beyond that for the node to come that shows it overloaded. Milliseconds: a clump of dials is gone sooner. */
const OVERLOAD_WAIT_MS = 1_000;
/** Width of the longest bar. Characters. */
const BAR_CHARS = 40;

/** A forecast for people. */
export function forecastText(forecast: DrainForecast, arrivals: ArrivalForecast): string {
  const { spread, naive } = arrivals;
  return [
    ...planLines(forecast),
    "",
    "Clients a second that are back, from the first close on:",
    ...chart(spread),
    "",
    `with the spread   ${numbers(spread)}`,
    `without it        ${numbers(naive)}`,
    ...warnings(forecast, spread),
  ].join("\n");
}

/** A forecast for programs. */
export function forecastAnswer(forecast: DrainForecast, arrivals: ArrivalForecast): Record<string, unknown> {
  return { ...forecastFields(forecast), arrivals, dryRun: true };
}

/** What is in the answer to an order, in the words of `--json`. */
export function forecastFields(forecast: DrainForecast): Record<string, unknown> {
  return {
    node: forecast.node,
    shards: forecast.shards,
    links: forecast.links,
    acceptRate: forecast.accept_rate,
    measured: forecast.is_measured,
    spreadMs: forecast.spread_ms,
    waves: forecast.waves.map(({ at_ms: atMs, links }) => ({ atMs, links })),
    handedOver: forecast.is_handed_over,
    servedMeanwhile: forecast.is_served_meanwhile,
    gapMs: forecast.gap_ms,
  };
}

/** A report for people. */
export function reportText(report: DrainReport): string {
  const { links, back, back_within_spread: inTime, elsewhere, never, unknown, destroyed } = report;
  const lines = [
    `${links} links were closed in ${seconds(report.spread_ms)}${wavesText(report.waves)}${
      destroyed === 0 ? "" : `; ${destroyed} of them did not let go and were cut`
    }`,
    `  back         ${back}, ${inTime} of them within the spread`,
    `  elsewhere    ${elsewhere}`,
    `  never        ${never}`,
    ...(unknown === 0 ? [] : [`  not counted  ${unknown}`]),
  ];
  if (report.p50_ms !== null) {
    const { p50_ms: p50, p95_ms: p95, max_ms: max } = report;
    lines.push(`  came back    p50 ${seconds(p50)}, p95 ${seconds(p95 ?? 0)}, last ${seconds(max ?? 0)}`);
  }
  if (report.down_ms !== null) lines.push(`  nobody served for ${seconds(report.down_ms)}`);
  return lines.join("\n");
}

/** A report for programs. */
export function reportAnswer(report: DrainReport): Record<string, unknown> {
  return {
    state: report.state,
    node: report.node,
    shards: report.shards,
    startedAt: report.started_at,
    spreadMs: report.spread_ms,
    waves: report.waves,
    acceptRate: report.accept_rate,
    links: report.links,
    closed: report.closed,
    destroyed: report.destroyed,
    back: report.back,
    backWithinSpread: report.back_within_spread,
    elsewhere: report.elsewhere,
    never: report.never,
    unknown: report.unknown,
    p50Ms: report.p50_ms,
    p95Ms: report.p95_ms,
    maxMs: report.max_ms,
    downMs: report.down_ms,
  };
}

function planLines(forecast: DrainForecast): string[] {
  const {
    node,
    shards,
    links,
    waves,
    spread_ms: spreadMs,
    accept_rate: rate,
    is_measured: isMeasured,
  } = forecast;
  const learnt = isMeasured ? "as measured" : "not measured yet";
  return [
    `would restart ${node}, which runs ${shards.join(", ")}`,
    `  links        ${count(links)}, closed in ${seconds(spreadMs)}${wavesText(waves.length)}`,
    `  accept rate  ${count(rate)} links/s, ${learnt}`,
    `  meanwhile    ${meanwhileText(forecast)}`,
  ];
}

function meanwhileText(forecast: DrainForecast): string {
  if (forecast.is_served_meanwhile) return "other nodes take clients in";
  const gap = seconds(forecast.gap_ms);
  return forecast.is_handed_over
    ? `nobody serves for about ${gap}; dials wait in the socket's queue`
    : `nobody serves for about ${gap}; dials are refused`;
}

function chart({ perSecond }: Arrivals): string[] {
  const width = Math.max(1, Math.ceil(perSecond.length / CHART_LINES_MAX));
  const rows = Array.from({ length: Math.ceil(perSecond.length / width) }, (_, row) => {
    const part = perSecond.slice(row * width, (row + 1) * width);
    return part.reduce((sum, rate) => sum + rate, 0) / width;
  });
  const highest = Math.max(1, ...rows);
  return rows.map((rate, row) => {
    const at = `${row * width} s`.padStart(7);
    const bar = "#".repeat(Math.round((rate / highest) * BAR_CHARS)).padEnd(BAR_CHARS);
    return `${at}  ${bar}  ${count(rate)}`;
  });
}

function numbers(arrivals: Arrivals): string {
  const { peakPerS, peakToMean, p50Ms, p95Ms, maxMs, longestWaitMs, failedDials, missing } = arrivals;
  const refused = failedDials === 0 ? "" : `, ${count(failedDials)} dials in vain`;
  const lost = missing === 0 ? "" : `, ${count(missing)} not back in 10 min`;
  return (
    `peak ${count(peakPerS)}/s (${peakToMean.toFixed(1)} × mean), ` +
    `p50 ${seconds(p50Ms)}, p95 ${seconds(p95Ms)}, last ${seconds(maxMs)}, ` +
    `dials wait up to ${seconds(longestWaitMs)}${refused}${lost}`
  );
}

function warnings(forecast: DrainForecast, { longestWaitMs }: Arrivals): string[] {
  const queuedMs = forecast.is_handed_over && !forecast.is_served_meanwhile ? forecast.gap_ms : 0;
  if (longestWaitMs <= queuedMs + OVERLOAD_WAIT_MS) return [];
  return [
    "",
    "More clients come than the node can accept at a time: a longer spread, or another node, would help.",
  ];
}

function wavesText(waves: number): string {
  return waves === 1 ? "" : `, ${waves} waves one spread apart`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}
