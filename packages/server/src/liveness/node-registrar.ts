// Makes a node known to the directory, at the start or, where the directory is away, as soon as it is back.
//
// Design: "Liveness: static stability first". A node that has a replica serves from it whatever the directory does.
// I1  What needs the registration (leases, the lead) begins after it, and once.
// I2  A refusal that waiting will not cure (a shard that another live node runs) is the caller's to report.

import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import {
  isDirectoryAway,
  type Directory,
  type NodeRegistered,
  type NodeRegistration,
} from "../directory/directory.ts";

/** How often a directory that is away is asked again. Milliseconds. */
const RETRY_MS = 2_000;

export interface NodeRegistrarOptions {
  readonly directory: Pick<Directory, "registerNode">;
  readonly registration: NodeRegistration;
  /** Called once the directory knows this node, with what it gave it. */
  readonly onRegistered: (registered: NodeRegistered) => void;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** Registers from `start` to `stop`. */
export class NodeRegistrar {
  readonly #options: NodeRegistrarOptions;
  #timer: TimerHandle | undefined;
  #isStopped = false;

  constructor(options: NodeRegistrarOptions) {
    this.#options = options;
  }

  /** Resolves when the node is registered, or when that must wait. Rejects with what waiting will not cure. */
  async start(): Promise<void> {
    const { directory, registration, logger, onRegistered } = this.#options;
    let registered: NodeRegistered;
    try {
      registered = await directory.registerNode(registration);
    } catch (error) {
      if (!isDirectoryAway(error)) throw error;
      logger.warn("node-not-registered", { node: registration.id, reason: error.code });
      return this.#retryLater();
    }
    if (!this.#isStopped) onRegistered(registered);
  }

  stop(): void {
    this.#isStopped = true;
    this.#options.runtime.cancel(this.#timer);
  }

  #retryLater(): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.runtime.schedule(RETRY_MS, () => void this.#retry());
  }

  async #retry(): Promise<void> {
    const { directory, registration, logger, onRegistered } = this.#options;
    let registered: NodeRegistered;
    try {
      registered = await directory.registerNode(registration);
    } catch (error) {
      // A conflict may end too: the node that has the shard leaves, or is silent for long enough.
      if (!isDirectoryAway(error))
        logger.error("node-refused", { node: registration.id, reason: reasonOf(error) });
      return this.#retryLater();
    }
    if (this.#isStopped) return;
    logger.info("node-registered", { node: registration.id });
    onRegistered(registered);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : "unknown failure";
}
