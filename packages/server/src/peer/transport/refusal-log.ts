// Connections that others opened and that never became a link: each cause is said once per place, not at every redial.

import type { Logger } from "@moor/runtime";
import type { LinkCore } from "./link-core.ts";
import type { LinkEnd, LinkEnding } from "./link-end.ts";

/** Causes kept in mind. Count: beyond it the oldest may be said again. */
const REMEMBERED_MAX = 200;

/** Ends that are part of how two nodes find one link, or of a node's leaving. */
const ORDINARY: ReadonlySet<LinkEnd> = new Set<LinkEnd>([
  "remote-closed",
  "duplicate",
  "replaced",
  "leaving",
]);

/** Warnings about refused connections. */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #said = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note(link: LinkCore, { by, reason, cause }: LinkEnding): void {
    const { nodeId, remote } = link;
    const fields = { peer: nodeId === "" ? undefined : nodeId, remote, by, reason, cause };
    const place = nodeId === "" ? remote.replace(/:\d+$/, "") : nodeId;
    const what = `${by} ${reason} ${place}`;
    if (ORDINARY.has(reason) || this.#said.has(what)) {
      return this.#logger.debug("peer-refused", fields);
    }
    if (this.#said.size >= REMEMBERED_MAX) this.#said.clear();
    this.#said.add(what);
    this.#logger.warn("peer-refused", fields);
  }
}
