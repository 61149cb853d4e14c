// What many link clients went through, and what it comes to: how a crowd came back after its links had ended.
//
// Spec: L16, L24.
// I1  Moments are wall-clock milliseconds, so that journals of several processes of one machine can be put together.
// I2  A verdict counts; nothing here decides what is good enough.

/** One thing that happened to one client. `client`: its number in the fleet. */
export type LinkEvent =
  /** It began to dial. */
  | { readonly kind: "dial"; readonly atMs: number; readonly client: number }
  /** Its hello_ok was verified. */
  | { readonly kind: "online"; readonly atMs: number; readonly client: number }
  /** A dial ended without hello_ok, or a link ended. `code`: a close code or the status of an answer that is no 101; 0 when
   *  there was neither, and `fault` says what there was instead. */
  | {
      readonly kind: "failed" | "lost";
      readonly atMs: number;
      readonly client: number;
      readonly code: number;
      readonly fault?: string;
    };

/** How a crowd came back. Times are from the first lost link on. */
export interface ReturnVerdict {
  readonly clients: number;
  /** Clients whose link ended. */
  readonly lost: number;
  /** Of them, those that were online again at the end. */
  readonly back: number;
  /** Close codes of the lost links, with their counts. */
  readonly lostBy: Readonly<Record<string, number>>;
  readonly dials: number;
  readonly failedDials: number;
  /** Dials in the fullest second, wherever it begins. */
  readonly peakDialsPerS: number;
  /** Dials over the spread, a second. */
  readonly meanDialsPerS: number;
  readonly peakHelloOksPerS: number;
  /** hello_oks a second from the first one to the last one. */
  readonly helloOksPerS: number;
  readonly backP50Ms: number;
  readonly backP95Ms: number;
  readonly lastBackMs: number;
}

/** Judges what happened since `sinceMs`. `spreadMs`: time the dials should be spread over. */
export function judgeReturn(
  events: readonly LinkEvent[],
  {
    clients,
    sinceMs,
    spreadMs,
  }: { readonly clients: number; readonly sinceMs: number; readonly spreadMs: number },
): ReturnVerdict {
  const seen = events.filter(({ atMs }) => atMs >= sinceMs).toSorted((one, other) => one.atMs - other.atMs);
  const lostBy: Record<string, number> = {};
  const waiting = new Set<number>();
  const lost = new Set<number>();
  const backAtMs: number[] = [];
  const dialsAtMs: number[] = [];
  let failedDials = 0;
  let firstLostAtMs: number | undefined;
  for (const event of seen) {
    switch (event.kind) {
      case "lost":
        firstLostAtMs ??= event.atMs;
        lostBy[event.code] = (lostBy[event.code] ?? 0) + 1;
        lost.add(event.client);
        waiting.add(event.client);
        break;
      case "dial":
        dialsAtMs.push(event.atMs);
        break;
      case "failed":
        failedDials += 1;
        break;
      case "online":
        if (waiting.delete(event.client)) backAtMs.push(event.atMs);
        break;
    }
  }
  const from = firstLostAtMs ?? sinceMs;
  const after = (share: number) =>
    Math.round((backAtMs[Math.floor((backAtMs.length - 1) * share)] ?? from) - from);
  return {
    clients,
    lost: lost.size,
    back: lost.size - waiting.size,
    lostBy,
    dials: dialsAtMs.length,
    failedDials,
    peakDialsPerS: fullestSecond(dialsAtMs),
    meanDialsPerS: rounded((dialsAtMs.length * 1000) / spreadMs),
    peakHelloOksPerS: fullestSecond(backAtMs),
    helloOksPerS: rateOf(backAtMs),
    backP50Ms: after(0.5),
    backP95Ms: after(0.95),
    lastBackMs: after(1),
  };
}

/** Most moments that lie within one second, of moments in order. */
export function fullestSecond(sortedMs: readonly number[]): number {
  let first = 0;
  let most = 0;
  sortedMs.forEach((atMs, at) => {
    while (atMs - (sortedMs[first] ?? atMs) >= 1000) first += 1;
    most = Math.max(most, at - first + 1);
  });
  return most;
}

/** Moments in each second since `fromMs`, for a curve. */
export function perSecond(atMs: readonly number[], fromMs: number): readonly number[] {
  const counts: number[] = [];
  for (const moment of atMs) {
    const second = Math.floor((moment - fromMs) / 1000);
    if (second < 0) continue;
    while (counts.length <= second) counts.push(0);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return counts;
}

function rateOf(sortedMs: readonly number[]): number {
  const tookMs = (sortedMs.at(-1) ?? 0) - (sortedMs[0] ?? 0);
  return tookMs === 0 ? 0 : rounded((sortedMs.length * 1000) / tookMs);
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
