// Every call whose caller this entry holds: from submission to its one end.
//
// Spec: T6 (404 for what is finished), T7 (own deadline), T11 (what a caller may retry), T12, T13; design "Shape".
// I1  `not-owner` is followed with the remaining time, at most OWNER_HOPS_MAX times, and only for a call that was
//     certainly not handed out.
// I2  503 with Retry-After only for a call that was certainly not handed out; else 504, or 502 `unknown`.

import { ProtocolError, type ErrorCode, type InstanceId, type TunnelId } from "@moor/protocol";
import type { Placement } from "../directory/directory.ts";
import type { CallOutcome } from "../operator/metrics.ts";
import type { CallId, CallRefusal } from "../peer/peer-link.ts";
import { OWNER_HOPS_MAX, RETRY_AFTER_S } from "../server-limits.ts";
import type { EntryContext } from "./entry-context.ts";
import type { HeldCall } from "./held-call.ts";

export class CallTable {
  readonly #context: EntryContext;
  readonly #calls = new Map<CallId, HeldCall>();
  readonly #onEmpty = new Set<() => void>();

  constructor(context: EntryContext) {
    this.#context = context;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Takes a call on, submits it to its owner and watches its deadline. */
  start(call: HeldCall): void {
    const { runtime, metrics } = this.#context;
    this.#calls.set(call.callId, call);
    metrics.callsHeld.set(this.#calls.size);
    call.deadlineTimer = runtime.schedule(call.deadlineAtMs - runtime.monotonicMs(), () =>
      this.#expire(call),
    );
    this.#submit(call, this.#context.replica.tunnel(call.tunnel)?.placement, 0);
  }

  /** The call with this id if it belongs to `tunnel` and still waits for its end. */
  find(callId: CallId, tunnel: TunnelId): HeldCall | undefined {
    const call = this.#calls.get(callId);
    return call?.tunnel === tunnel ? call : undefined;
  }

  /** The shard will not take the call. */
  refuse(callId: CallId, refusal: CallRefusal): void {
    const call = this.#calls.get(callId);
    if (call?.progress?.kind !== "submitted") return;
    if (refusal.kind === "refused") return this.fail(call, refusalError(refusal.code));
    const known = this.#context.replica.tunnel(call.tunnel)?.placement;
    const { hops } = call.progress;
    if (hops >= OWNER_HOPS_MAX) return this.fail(call, refusalError("tunnel_transport_unavailable"));
    this.#submit(call, newerPlacement(known, refusal.placement), hops + 1);
  }

  handedOut(callId: CallId, instance: InstanceId): void {
    const call = this.#calls.get(callId);
    if (call?.progress === undefined) return;
    call.progress = { kind: "handed-out", port: call.progress.port, instance };
    this.#context.logger.debug("call-handed-out", { callId, tunnel: call.tunnel, instance });
  }

  /** Ends a call with an error. */
  fail(call: HeldCall, error: ProtocolError): void {
    if (!this.#remove(call, callOutcome(error.code))) return;
    if (call.progress?.kind === "submitted") call.progress.port.withdrawCall(call.tunnel, call.callId);
    else call.progress?.port.endCall(call.tunnel, call.callId);
    call.answer.fail(error);
  }

  /** Ends a call whose answer was given by `write`. */
  finish(call: HeldCall, outcome: CallOutcome, write: () => void): void {
    if (!this.#remove(call, outcome)) return;
    call.progress?.port.endCall(call.tunnel, call.callId);
    write();
  }

  /** The caller hung up (T13). */
  abandon(call: HeldCall): void {
    if (!this.#remove(call, "caller_gone")) return;
    call.answer.abandon();
    call.progress?.port.withdrawCall(call.tunnel, call.callId);
  }

  /** Ends the calls of a tunnel that was deleted: nobody can answer them any more. */
  tunnelDeleted(tunnel: TunnelId): void {
    for (const call of this.#calls.values()) {
      if (call.tunnel === tunnel) this.#failAs(call, "tunnel_not_found");
    }
  }

  /** Resolves when no call is held, or after `graceMs` when those left have been told so. */
  async drain(graceMs: number): Promise<void> {
    const { runtime } = this.#context;
    if (this.#calls.size === 0) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        runtime.cancel(timer);
        this.#onEmpty.delete(done);
        resolve();
      };
      const timer = runtime.schedule(graceMs, done);
      this.#onEmpty.add(done);
    });
    for (const call of this.#calls.values()) this.#failAs(call, "node_draining");
  }

  /** Ends a call with `code` if it was certainly not handed out, else with an unknown outcome (I2). */
  #failAs(call: HeldCall, code: ErrorCode): void {
    this.fail(call, call.progress?.kind === "handed-out" ? unknownOutcome() : refusalError(code));
  }

  #submit(call: HeldCall, placement: Placement | undefined, hops: number): void {
    const { shardPort, runtime, entry } = this.#context;
    if (placement === undefined) return this.fail(call, refusalError("tunnel_not_found"));
    const port = shardPort(placement.shard);
    if (port === undefined) return this.fail(call, refusalError("tunnel_transport_unavailable"));
    call.progress = { kind: "submitted", port, hops };
    port.submitCall({
      callId: call.callId,
      entry,
      tunnel: call.tunnel,
      channel: call.channel,
      commandType: call.commandType,
      command: call.command,
      remainingMs: Math.max(0, call.deadlineAtMs - runtime.monotonicMs()),
      pinnedTo: call.pinnedTo,
      placement,
    });
  }

  #expire(call: HeldCall): void {
    if (!this.#remove(call, "deadline")) return;
    call.progress?.port.withdrawCall(call.tunnel, call.callId);
    call.answer.fail(new ProtocolError("deadline_exceeded"));
  }

  /** Forgets a call; `false` if it had ended before. */
  #remove(call: HeldCall, outcome: CallOutcome): boolean {
    if (!this.#calls.delete(call.callId)) return false;
    const { runtime, metrics, bodies, logger } = this.#context;
    runtime.cancel(call.deadlineTimer);
    bodies.release(call.reservedBytes);
    const durationMs = runtime.monotonicMs() - call.startedAtMs;
    metrics.callsHeld.set(this.#calls.size);
    metrics.callBytesHeld.set(bodies.heldBytes);
    metrics.callsEnded.inc(outcome);
    metrics.callDurationSeconds.observe(durationMs / 1000);
    if (logger.isDebug) {
      logger.debug("call-ended", { callId: call.callId, tunnel: call.tunnel, outcome, durationMs });
    }
    if (this.#calls.size === 0) for (const done of this.#onEmpty) done();
    return true;
  }
}

/** An error that says: handed out, outcome not known, ask before doing it again. Spec T11. */
export function unknownOutcome(): ProtocolError {
  return new ProtocolError("command_outcome_unknown", { data: { outcome: "unknown" } });
}

/** A refusal of a call that was certainly not handed out. Spec T11. */
export function refusalError(code: ErrorCode): ProtocolError {
  const mayRetry = new ProtocolError(code).status === 503 || code === "tunnel_queue_full";
  return new ProtocolError(code, mayRetry ? { retryAfterS: RETRY_AFTER_S } : {});
}

function newerPlacement(left: Placement | undefined, right: Placement | undefined): Placement | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return right.revision > left.revision ? right : left;
}

const OUTCOMES: Partial<Record<ErrorCode, CallOutcome>> = {
  deadline_exceeded: "deadline",
  command_outcome_unknown: "unknown",
  invalid_agent_response: "bad_answer",
  agent_response_too_large: "bad_answer",
  tunnel_client_not_connected: "not_connected",
  tunnel_client_not_seen: "not_seen",
  tunnel_queue_full: "queue_full",
  overloaded: "overloaded",
  node_draining: "draining",
};

/** The metric label of a call that ended with `code`. */
export function callOutcome(code: ErrorCode): CallOutcome {
  return OUTCOMES[code] ?? "failed";
}
