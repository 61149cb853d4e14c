// Tells the directory, in batches and off the path of any poll, which tunnels an agent has polled.
//
// Spec: T12 (never seen).   Invariants: those of write-behind.ts.

import type { TunnelId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import type { Directory } from "../directory/directory.ts";
import { SEEN_FLUSH_INTERVAL_MS } from "../server-limits.ts";
import { WriteBehind } from "./write-behind.ts";

/** Polled tunnels on their way to the directory. */
export class SeenRecorder {
  readonly #notes: WriteBehind<TunnelId>;

  constructor(directory: Pick<Directory, "recordSeen">, runtime: Runtime, logger: Logger) {
    this.#notes = new WriteBehind({
      write: (tunnels) => directory.recordSeen(tunnels),
      intervalMs: SEEN_FLUSH_INTERVAL_MS,
      onFailed: (count) => logger.warn("seen-not-recorded", { count }),
      runtime,
    });
  }

  note(tunnel: TunnelId): void {
    this.#notes.note(tunnel, tunnel);
  }

  /** Writes what is noted once more and stops. */
  close(): Promise<void> {
    return this.#notes.close();
  }
}
