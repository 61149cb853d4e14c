// Dials a port again and again, each time with one request, and counts how that ends: for ports that must not go dark.
//
// I1  A dial counts once, when its connection has ended. I2  Nothing is retried.

import { connect } from "node:net";
import { createNodeRuntime } from "@moor/runtime";
import { until } from "./within.ts";

/** How dials ended. Counts. */
export interface DialCounts {
  readonly dialled: number;
  /** An answer with status 200 came. */
  readonly served: number;
  /** An answer with another status came. */
  readonly turnedAway: number;
  /** ECONNREFUSED: nobody listened. */
  readonly refused: number;
  /** The connection was reset, or ended without an answer: it was dropped before or after it was accepted. */
  readonly reset: number;
}

export interface Dialling {
  readonly counts: DialCounts;
  /** Dials no more; resolves when every dial has ended. */
  stop(): Promise<DialCounts>;
}

const REQUEST = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const TICK_MS = 2;

/** Dials `perS` times a second. */
export function startDialling(port: number, perS: number): Dialling {
  const runtime = createNodeRuntime();
  const counts = { dialled: 0, served: 0, turnedAway: 0, refused: 0, reset: 0 };
  const startedAtMs = runtime.monotonicMs();
  let open = 0;
  const dial = () => {
    counts.dialled += 1;
    open += 1;
    let answer = "";
    let code = "";
    const socket = connect({ host: "127.0.0.1", port });
    socket.on("connect", () => socket.write(REQUEST));
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
    socket.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? "unknown"));
    socket.on("close", () => {
      open -= 1;
      if (answer.startsWith("HTTP/1.1 200 ")) counts.served += 1;
      else if (answer.startsWith("HTTP/1.1 ")) counts.turnedAway += 1;
      else if (code === "ECONNREFUSED") counts.refused += 1;
      else counts.reset += 1;
    });
  };
  const tick = () => {
    const due = ((runtime.monotonicMs() - startedAtMs) / 1000) * perS;
    while (counts.dialled < due) dial();
    timer = runtime.schedule(TICK_MS, tick);
  };
  let timer = runtime.schedule(0, tick);
  return {
    counts,
    stop: async () => {
      runtime.cancel(timer);
      await until(() => open === 0, "every dial to end", 60_000);
      return counts;
    },
  };
}
