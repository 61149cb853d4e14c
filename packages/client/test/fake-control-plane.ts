// A control plane without sockets: records requests and answers what a test says, when it says so.

import type { CollectedAnswer, ControlPlane, HeaderLine, PollRequest, ResponseRequest } from "@moor/client";

/** One request that waits for its answer. */
export interface PendingRequest<Request> {
  readonly request: Request;
  readonly signal: AbortSignal;
  readonly answer: (answer: CollectedAnswer) => void;
}

export class FakeControlPlane implements ControlPlane {
  readonly polls: PendingRequest<PollRequest>[] = [];
  readonly responses: PendingRequest<ResponseRequest>[] = [];

  poll(request: PollRequest, signal: AbortSignal): Promise<CollectedAnswer> {
    return pending(this.polls, request, signal);
  }

  respond(request: ResponseRequest, signal: AbortSignal): Promise<CollectedAnswer> {
    return pending(this.responses, request, signal);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Bodies posted so far, as text. */
  get bodies(): string[] {
    return this.responses.map(({ request }) => Buffer.from(request.body).toString("utf8"));
  }
}

/** A complete answer. */
export function answer(
  status: number,
  body = "",
  headerLines: readonly HeaderLine[] = [],
  headAtMs = 0,
): CollectedAnswer {
  return { kind: "answer", status, headerLines, body: Buffer.from(body), isComplete: true, headAtMs };
}

/** A correction as R5 writes it. */
export function correction(
  token: string,
  revision: number,
  headerLines: readonly HeaderLine[] = [],
): CollectedAnswer {
  return answer(409, `{"error":{"code":"wrong_cluster","policy_revision":${revision}}}`, [
    ["X-Tunnel-Shard-Token", token],
    ...headerLines,
  ]);
}

/** A transport fault before any head. */
export function reset(wasWritten = true): CollectedAnswer {
  return { kind: "fault", category: "reset", wasWritten };
}

function pending<Request>(
  list: PendingRequest<Request>[],
  request: Request,
  signal: AbortSignal,
): Promise<CollectedAnswer> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: "cancelled" });
    signal.addEventListener("abort", () => resolve({ kind: "cancelled" }), { once: true });
    list.push({ request, signal, answer: resolve });
  });
}
