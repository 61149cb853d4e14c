// One HTTP attempt whose whole answer is wanted: with a deadline, a limit on its body, and cancellation.
//
// Spec: R6 (read one byte past the limit, then close, do not drain), R14 (deadline, body cut short, cancellation), T18.
// I1  Settles exactly once and never rejects. I2  If it was cancelled, it is cancelled, whatever else happened (R14).
// I3  The one timer it takes is given back whichever way it ends.

import type { Runtime, TimerHandle } from "@moor/runtime";
import type { Dispatcher } from "undici";
import { decodeContent } from "./content-decoding.ts";
import { startExchange, type Exchange, type ExchangeEnd, type ExchangeRequest } from "./exchange.ts";
import type { FaultCategory } from "./fault-category.ts";
import type { HeaderLine } from "./header-lines.ts";

/** What came of one attempt. */
export type CollectedAnswer =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headerLines: readonly HeaderLine[];
      /** Content-decoded. When `isComplete` is false it was over the limit or could not be decoded. */
      readonly body: Uint8Array;
      readonly isComplete: boolean;
      /** Monotonic time at which the head arrived, milliseconds. */
      readonly headAtMs: number;
    }
  /** The head arrived, the rest did not. */
  | {
      readonly kind: "cut";
      readonly status: number;
      readonly headerLines: readonly HeaderLine[];
      readonly category: FaultCategory;
    }
  | { readonly kind: "fault"; readonly category: FaultCategory; readonly wasWritten: boolean }
  | { readonly kind: "cancelled" };

/** Bounds of one attempt. */
export interface CollectLimits {
  /** Milliseconds from now to the end of the answer; undefined for none. */
  readonly deadlineMs: number | undefined;
  /** Largest accepted body for a status, bytes, before and after content decoding. */
  readonly bodyBytesMax: (status: number) => number;
}

interface Head {
  readonly status: number;
  readonly headerLines: readonly HeaderLine[];
  readonly headAtMs: number;
}

/** Makes one attempt and collects its answer. */
export function collectAnswer(
  runtime: Runtime,
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  limits: CollectLimits,
  signal?: AbortSignal,
): Promise<CollectedAnswer> {
  if (signal?.aborted) return Promise.resolve({ kind: "cancelled" });
  return new Promise((resolve) => {
    let head: Head | undefined;
    let bytesMax = 0;
    let bodyBytes = 0;
    let isSettled = false;
    let exchange: Exchange | undefined;
    let timer: TimerHandle | undefined;
    const chunks: Buffer[] = [];

    const abort = () => exchange?.abort();
    const settle = (answer: CollectedAnswer) => {
      isSettled = true;
      runtime.cancel(timer);
      signal?.removeEventListener("abort", abort);
      resolve(answer);
    };
    exchange = startExchange(dispatcher, request, {
      onHead: (status, headerLines) => {
        head = { status, headerLines, headAtMs: runtime.monotonicMs() };
        bytesMax = limits.bodyBytesMax(status);
      },
      onData: (chunk) => {
        chunks.push(chunk);
        bodyBytes += chunk.length;
        if (bodyBytes > bytesMax) exchange?.abort();
      },
      onEnd: (end) => {
        if (signal?.aborted) return settle({ kind: "cancelled" });
        if (head === undefined) return settle(headless(end));
        if (end.kind === "complete") return settle(whole(head, chunks, bytesMax));
        if (bodyBytes > bytesMax) {
          return settle({ kind: "answer", ...head, body: Buffer.concat(chunks), isComplete: false });
        }
        const { status, headerLines } = head;
        settle({ kind: "cut", status, headerLines, category: categoryOf(end) });
      },
    });
    // A request that cannot be sent ends before startExchange returns.
    if (isSettled) return;
    if (limits.deadlineMs !== undefined) timer = runtime.schedule(limits.deadlineMs, abort);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

function headless(end: ExchangeEnd): CollectedAnswer {
  const wasWritten = end.kind === "complete" || end.wasWritten;
  return { kind: "fault", category: categoryOf(end), wasWritten };
}

/** An exchange that nobody cancelled and that is within its limits is aborted by its deadline alone. */
function categoryOf(end: ExchangeEnd): FaultCategory {
  switch (end.kind) {
    case "fault":
      return end.category;
    case "aborted":
      return "timeout";
    case "complete":
      return "protocol";
  }
}

function whole(head: Head, chunks: readonly Buffer[], bytesMax: number): CollectedAnswer {
  const body = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
  const decoded = decodeContent(body, head.headerLines, bytesMax);
  return { kind: "answer", ...head, body: decoded ?? body, isComplete: decoded !== undefined };
}
