// Connections that others opened and that never became a link: each cause is said once per place, not at every redial.

import type { Logger } from "@moor/runtime";

/** Causes kept in mind. Count: beyond it they may be said again. */
const REMEMBERED_MAX = 200;

/** Ends that are part of how two nodes find one link, or of a node's leaving. */
const ORDINARY: ReadonlySet<string> = new Set(["remote-closed", "duplicate", "replaced", "leaving"]);

/** A connection that came to nothing. */
export interface Refusal {
  /** The node it claimed to be of; empty when it did not come to that. */
  readonly peer: string;
  /** Its address. */
  readonly remote: string;
  readonly by: "self" | "peer";
  /** A word of LinkEnd, or `certificate`. */
  readonly reason: string;
  /** Error code of the system or of TLS. */
  readonly cause: string | undefined;
}

/** Warnings about refused connections. */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #said = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note({ peer, remote, by, reason, cause }: Refusal): void {
    const fields = { peer: peer === "" ? undefined : peer, remote, by, reason, cause };
    const place = peer === "" ? remote.replace(/:\d+$/, "") : peer;
    const what = [by, reason, cause, place].join(" ");
    if (ORDINARY.has(reason) || this.#said.has(what)) return this.#logger.debug("peer-refused", fields);
    if (this.#said.size >= REMEMBERED_MAX) this.#said.clear();
    this.#said.add(what);
    this.#logger.warn("peer-refused", fields);
  }
}
