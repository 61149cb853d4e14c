// The closed loop of the bench's loads: each caller sends its next call when it has the end of the one before.
// Prints "measuring" after the warm-up, then one line of JSON (LoadResult).

export interface LoadResult {
  readonly calls: number;
  /** Calls that did not end as they should. */
  readonly errors: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Has every caller call until the measured time is over; `call` resolves with whether it ended well. Times in milliseconds. */
export async function runClosedLoop<Caller>(
  callers: readonly Caller[],
  call: (caller: Caller) => Promise<boolean>,
  warmUpMs: number,
  measuredMs: number,
): Promise<void> {
  let latenciesMs: number[] = [];
  let errors = 0;
  const callOnce = async (caller: Caller) => {
    const startMs = performance.now();
    const isGood = await call(caller);
    latenciesMs.push(performance.now() - startMs);
    if (!isGood) errors += 1;
  };
  const callUntil = async (endMs: number) => {
    const loop = async (caller: Caller) => {
      while (performance.now() < endMs) {
        // One that throws counts, but it has no latency.
        await callOnce(caller).catch(() => (errors += 1));
      }
    };
    await Promise.all(callers.map(loop));
  };
  await callUntil(performance.now() + warmUpMs);
  latenciesMs = [];
  errors = 0;
  console.log("measuring");
  const startMs = performance.now();
  await callUntil(startMs + measuredMs);
  const elapsedMs = performance.now() - startMs;
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number) => latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? 0;
  const result: LoadResult = {
    calls: latenciesMs.length,
    errors,
    elapsedMs,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
  console.log(JSON.stringify(result));
}
