// The start of a node that takes over from a running one: the port first, then the data directory.
//
// Spec: L24; design "Drains and restarts".
// I1  From the moment it is bound the port never goes dark: who dials waits, or is answered by the process that leaves.
// I2  A start that fails gives the port back.

import { errorCodeOf } from "@moor/runtime";
import { relayToLeaving, leavingSocketPath } from "./leaving-relay.ts";
import { LEAVE_SIGNAL, takeOver } from "./take-over.ts";
import { openPublicListener, type PublicListener } from "../public-listener.ts";
import type { NodeOptions } from "../node-options.ts";

/**
 * Binds the public port beside the process that has it, and waits until that one has left its data directory. Throws
 * ConfigError.
 */
export async function takePort(options: NodeOptions, waitMs: number): Promise<PublicListener> {
  const { dataDir, runtime, logger } = options;
  const socketPath = leavingSocketPath(dataDir);
  const listener = await openPublicListener(options, (exchange) => relayToLeaving(exchange, socketPath));
  try {
    await takeOver({ dataDir, waitMs, tell: tellToLeave, runtime, logger });
    return listener;
  } catch (error) {
    await listener.close();
    throw error;
  }
}

/** A process that is gone by now has left without being told. */
export function tellToLeave(pid: number): void {
  try {
    process.kill(pid, LEAVE_SIGNAL);
  } catch (error) {
    if (errorCodeOf(error, "unknown") !== "ESRCH") throw error;
  }
}
