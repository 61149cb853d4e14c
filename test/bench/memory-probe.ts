// Loaded into a measured process by --import, with --expose-gc: at SIGWINCH it collects garbage and prints one line with
// what is left. It changes nothing else.

import { setTimeout as pause } from "node:timers/promises";

/** First word of the line. */
const MARK = "memory-probe";

process.on("SIGWINCH", () => {
  void (async () => {
    for (let round = 0; round < 3; round += 1) {
      globalThis.gc?.();
      await pause(100);
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    process.stderr.write(`${MARK} ${JSON.stringify({ rss, heapUsed, external })}\n`);
  })();
});
