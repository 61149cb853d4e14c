// Takes a data directory over from the process that holds it: tells it to leave, and waits until it has.
//
// Spec: L24; design "Drains and restarts".
// I1  Nobody is signalled but the process that has written itself down as the holder, lives, and is of this user.
// I2  The wait is bounded: a process that does not leave keeps the directory, and this one says so and ends. It ends too
//     when somebody else was faster: its half of the shared port would go dark for as long as it waited.

import { ConfigError, sleep, type Logger, type Runtime } from "@moor/runtime";
import { isDataFolderFree } from "../directory/data-folder.ts";
import { processState, readProcessFile, type ProcessIdentity } from "./process-file.ts";

/** Tells a process that its port has been taken over. `moor serve` and `moor dev` leave on it. */
export const LEAVE_SIGNAL = "SIGUSR2";

/** How often it is looked whether the directory is free. Milliseconds. */
const LOOK_INTERVAL_MS = 10;

/** Looks in a row that find the holder gone and the directory not free. Count: others that look hold it for a moment. */
const LOST_LOOKS = 20;

/** What taking over needs. */
export interface TakeOverOptions {
  readonly dataDir: string;
  /** How long the other process may take to leave. Milliseconds. */
  readonly waitMs: number;
  /** Tells a process to leave. One that is gone by then has left. */
  readonly tell: (pid: number) => void;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** Resolves when nobody holds the directory. Throws ConfigError when it cannot be had. */
export async function takeOver({ dataDir, waitMs, tell, runtime, logger }: TakeOverOptions): Promise<void> {
  if (isDataFolderFree(dataDir)) return logger.info("nothing-to-take-over");
  const holder = findHolder(dataDir);
  const startedAtMs = runtime.monotonicMs();
  logger.info("taking-over", { pid: holder.pid });
  tell(holder.pid);
  let lostLooks = 0;
  for (;;) {
    // In this order: its lock ends with it.
    const isGone = processState(holder) === "gone";
    if (isDataFolderFree(dataDir)) break;
    lostLooks = isGone ? lostLooks + 1 : 0;
    if (lostLooks > LOST_LOOKS) throw refusal(`${dataDir}, which another process has taken over`);
    const waitedMs = runtime.monotonicMs() - startedAtMs;
    if (waitedMs > waitMs) throw refusal(`${dataDir}, which process ${holder.pid} did not leave in time`);
    await sleep(runtime, LOOK_INTERVAL_MS);
  }
  logger.info("taken-over", { pid: holder.pid, waitedMs: Math.round(runtime.monotonicMs() - startedAtMs) });
}

/** The process that holds the directory. */
function findHolder(dataDir: string): ProcessIdentity {
  const holder = readProcessFile(dataDir);
  if (holder === undefined) throw refusal(`${dataDir}, which is in use, and no one says by whom`);
  switch (processState(holder)) {
    case "alive":
      return holder;
    case "gone":
      throw refusal(
        `${dataDir}, which is in use by another process than ${holder.pid}, which held it before`,
      );
    case "other-user":
      throw refusal(`${dataDir}, which process ${holder.pid} of another user holds`);
  }
}

function refusal(got: string): ConfigError {
  return new ConfigError("--take-over", got, "a data directory that a running node of this user holds");
}
