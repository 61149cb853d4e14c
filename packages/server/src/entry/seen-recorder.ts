// Tells the directory, in batches and off the path of any poll, which tunnels an agent has polled.
//
// Spec: T12 (never seen). I1  A tunnel is noted until the directory has it: a failed write is tried again.
// I2  At most one write in SEEN_FLUSH_INTERVAL_MS; the first after a quiet time is made at once, so that a node that is
//     killed soon after an agent's first poll still knows of it when it is back.

import type { TunnelId } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import type { Directory } from "../directory/directory.ts";
import { SEEN_FLUSH_INTERVAL_MS } from "../server-limits.ts";

export class SeenRecorder {
  readonly #directory: Directory;
  readonly #runtime: Runtime;
  readonly #logger: Logger;
  readonly #noted = new Set<TunnelId>();
  #timer: TimerHandle | undefined;
  #flushedAtMs = Number.NEGATIVE_INFINITY;

  constructor(directory: Directory, runtime: Runtime, logger: Logger) {
    this.#directory = directory;
    this.#runtime = runtime;
    this.#logger = logger;
  }

  note(tunnel: TunnelId): void {
    this.#noted.add(tunnel);
    const quietMs = this.#runtime.monotonicMs() - this.#flushedAtMs;
    this.#timer ??= this.#runtime.schedule(SEEN_FLUSH_INTERVAL_MS - quietMs, () => void this.flush());
  }

  /** Writes what is noted. Never rejects. */
  async flush(): Promise<void> {
    this.#runtime.cancel(this.#timer);
    this.#timer = undefined;
    const batch = [...this.#noted];
    if (batch.length === 0) return;
    this.#noted.clear();
    this.#flushedAtMs = this.#runtime.monotonicMs();
    try {
      await this.#directory.recordSeen(batch);
    } catch {
      this.#logger.warn("seen-not-recorded", { count: batch.length });
      for (const tunnel of batch) this.note(tunnel);
    }
  }

  /** Writes what is noted once more and stops. */
  async close(): Promise<void> {
    await this.flush();
    this.#runtime.cancel(this.#timer);
  }
}
