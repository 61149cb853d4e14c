// The seeds of a simulation: how many, which one alone, and how to run the one that failed again.

const ONLY_SEED = process.env["MOOR_SIM_SEED"];

/**
 * Runs `runSeed` for each seed, or for the one that MOOR_SIM_SEED names; an error says how to run its seed again.
 *
 * @param file path of the test, for the message
 * @param runsDefault number of seeds unless MOOR_SIM_RUNS says another
 */
export async function eachSeed(
  file: string,
  runsDefault: number,
  runSeed: (seed: number) => Promise<void>,
): Promise<void> {
  const runs = Number(process.env["MOOR_SIM_RUNS"] ?? runsDefault);
  const seeds =
    ONLY_SEED === undefined ? Array.from({ length: runs }, (_, at) => at + 1) : [Number(ONLY_SEED)];
  for (const seed of seeds) {
    try {
      await runSeed(seed);
    } catch (error) {
      const rerun = `MOOR_SIM_SEED=${seed} npx vitest run --project sim ${file}`;
      throw new Error(`seed ${seed}; rerun: ${rerun}`, { cause: error });
    }
  }
}
