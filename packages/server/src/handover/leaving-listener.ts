// Where a process whose port has been taken over serves the one that follows: a socket in its data directory.
//
// Spec: L24, T6.   What comes by it: leaving-relay.ts.

import { rmSync } from "node:fs";
import type { HttpExchange } from "../http/http-exchange.ts";
import { openHttpListener, type HttpListener } from "../http/http-listener.ts";
import type { NodeOptions } from "../node-options.ts";
import { leavingSocketPath } from "./leaving-relay.ts";

/** Listens; undefined where that cannot be done: answers to calls held here then come too late. */
export async function openLeavingListener(
  { dataDir, host, runtime, logger }: NodeOptions,
  handle: (exchange: HttpExchange) => Promise<void>,
): Promise<HttpListener | undefined> {
  const unixPath = leavingSocketPath(dataDir);
  try {
    rmSync(unixPath, { force: true }); // Of a process that was killed.
    const isLeaving = () => true;
    return await openHttpListener({
      host,
      port: 0,
      portOption: "data",
      unixPath,
      runtime,
      logger,
      isLeaving,
      handle,
    });
  } catch {
    logger.warn("leaving-socket-failed");
    return undefined;
  }
}
