// One HTTP/1.1 request and its answer as it arrives, over an undici dispatcher.
//
// Spec: R6 (raw header lines), R14, R18 (nothing follows a redirect), T19 (whether anything was written).
// I1  onEnd is called exactly once, last; after it the sink hears nothing more.
// I2  One call is one HTTP attempt: undici's dispatch neither retries nor follows redirects, and nothing here does.
// I3  `wasWritten` is false only when no byte of the request was given to a socket.

import type { Dispatcher } from "undici";
import { faultCategory, type FaultCategory } from "./fault-category.ts";
import { flattenHeaderLines, headerLinesFromRaw, type HeaderLine } from "./header-lines.ts";

/** A request as it goes out; `headers` are latin1 lines, `body` absent for none. */
export interface ExchangeRequest {
  readonly method: "GET" | "POST" | "DELETE" | "OPTIONS";
  /** Path and query, starting with a slash. */
  readonly path: string;
  readonly headers: readonly HeaderLine[];
  readonly body?: Uint8Array;
}

/** How an exchange ended. `aborted` is our own doing. */
export type ExchangeEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "fault"; readonly category: FaultCategory; readonly wasWritten: boolean }
  | { readonly kind: "aborted"; readonly wasWritten: boolean };

/** Hears an answer as it arrives. Interim (1xx) answers are not told. */
export interface ExchangeSink {
  onHead(status: number, headerLines: readonly HeaderLine[]): void;
  onData(chunk: Buffer): void;
  onEnd(end: ExchangeEnd): void;
}

/** A running exchange. */
export interface Exchange {
  /** Ends it at once, closing its connection if it has one. The sink's onEnd runs before this returns. */
  abort(): void;
  /** Stops reading the answer's body until `resume`. */
  pause(): void;
  resume(): void;
}

const ABORTED = new Error("exchange aborted");

/** Starts one attempt. Never throws: a request that cannot be sent ends as a fault. */
export function startExchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  sink: ExchangeSink,
): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let isEnded = false;
  let wasWritten = false;
  const end = (how: ExchangeEnd) => {
    if (isEnded) return;
    isEnded = true;
    sink.onEnd(how);
  };
  const fault = (error: unknown) => end({ kind: "fault", category: faultCategory(error), wasWritten });

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started;
      // Ended while it waited for a connection: aborting here keeps every byte of it back.
      if (isEnded) return started.abort(ABORTED);
      wasWritten = true;
    },
    onResponseStart(answered, status) {
      if (isEnded || status < 200) return;
      sink.onHead(status, headerLinesFromRaw((answered.rawHeaders ?? []) as (Buffer | string)[]));
    },
    onResponseData(_answered, chunk) {
      if (!isEnded) sink.onData(chunk);
    },
    onResponseEnd: () => end({ kind: "complete" }),
    onResponseError: (_answered, error) => fault(error),
  };

  try {
    dispatcher.dispatch(
      {
        method: request.method,
        path: request.path,
        headers: flattenHeaderLines(request.headers),
        body: request.body ?? null,
      },
      handler,
    );
  } catch (error) {
    fault(error);
  }
  return {
    abort: () => {
      end({ kind: "aborted", wasWritten });
      controller?.abort(ABORTED);
    },
    pause: () => controller?.pause(),
    resume: () => controller?.resume(),
  };
}
