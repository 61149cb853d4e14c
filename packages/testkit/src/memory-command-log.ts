// A command log that forgets with its process, for tests of what stands on one; it can be made to fail.

import type { CommandLog, LoggedCommand } from "@moor/client";

/** A log in memory. */
export interface MemoryCommandLog extends CommandLog {
  /** Whether nothing can be written from now on. */
  isFull: boolean;
  /** Whether nothing can be read or written from now on. */
  isGone: boolean;
  /** Ids begun, in order, and those ended, with an equals sign. */
  readonly written: readonly string[];
}

/** Makes an empty log. */
export function createMemoryCommandLog(): MemoryCommandLog {
  const known = new Map<string, LoggedCommand>();
  const written: string[] = [];
  const log: MemoryCommandLog = {
    isFull: false,
    isGone: false,
    written,
    look: (id) => Promise.resolve(log.isGone ? { kind: "unreadable" } : (known.get(id) ?? { kind: "new" })),
    begin: (id) => {
      if (log.isFull || log.isGone) return Promise.resolve("unwritable");
      known.set(id, { kind: "begun" });
      written.push(id);
      return Promise.resolve("begun");
    },
    end: (id, resultJson) => {
      if (log.isFull || log.isGone) return Promise.resolve("unwritable");
      known.set(id, { kind: "ended", resultJson });
      written.push(`${id}=`);
      return Promise.resolve("ended");
    },
    close: () => Promise.resolve(),
  };
  return log;
}
