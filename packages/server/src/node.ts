// One node: what it knows, what it serves and what it listens on, started and stopped in order.
//
// Spec: T1. Design "Shape". A node with a directory is directory-node.ts, one without is bootstrap-node.ts.
// I1  A node serves only what it has bound completely: a start that fails leaves nothing behind.
// I2  Leaving: readiness off, polls end, calls finish within the grace, then listeners, links and files close.

import { randomHex, type Runtime } from "@moor/runtime";
import { startBootstrapNode } from "./bootstrap-node.ts";
import type { LeaveOrder } from "./drains/node-drain.ts";
import { startDirectoryNode } from "./directory-node.ts";
import type { NodeOptions } from "./node-options.ts";
import type { EntryId } from "./peer/peer-link.ts";

/** A node that serves. */
export interface MoorNode {
  readonly id: string;
  /** URL that agents and callers are given. */
  readonly endpoint: string;
  /** Empty for a node without an operator listener. */
  readonly operatorUrl: string;
  /** Where other nodes dial it; empty for a node without peers. */
  readonly internalUrl: string;
  readonly dataDir: string;
  /** Resolves when another process took this node's identity: this one owns nothing any more and is to be closed. */
  readonly replaced: Promise<void>;
  /** Resolves when an operator has ordered this node to leave: it is to be closed, for somebody to start it anew. */
  readonly ordered: Promise<void>;
  /** Leaves politely: resolves when everything is closed. The grace is CLOSE_GRACE_MS by default. */
  close(order?: Partial<LeaveOrder>): Promise<void>;
}

/** Starts a node. Throws ConfigError for what cannot be bound, opened or used. */
export function startNode(options: NodeOptions): Promise<MoorNode> {
  const incarnation = mintIncarnation(options.runtime);
  return options.directory.kind === "none"
    ? startBootstrapNode(options, incarnation)
    : startDirectoryNode(options, options.directory, incarnation);
}

/** 16 hex characters from 64 random bits: new at each start. */
function mintIncarnation(runtime: Runtime): EntryId {
  return randomHex(runtime, 8) as EntryId;
}
