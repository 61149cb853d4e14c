// Every call whose caller this entry holds: from submission to its one end.
//
// Spec: T6 (404 for what is finished), T7 (own deadline), T11 (what a caller may retry), T12, T13; design "Shape".
// I1  `not-owner` is followed with the remaining time, at most OWNER_HOPS_MAX times in a row, and only for a call
//     that was certainly not handed out.
// I2  503 with Retry-After only for a call that was certainly not handed out; else 504, or 502 `unknown`.
// I3  A call is granted to one claimant at a time and to none after it may have been written.
// I4  A call whose owner cannot be reached is parked within its time, not failed.

import { ProtocolError, type ErrorCode, type TunnelId } from "@moor/protocol";
import type { ShardId } from "../directory/directory.ts";
import type { CallOutcome } from "../operator/metrics.ts";
import type {
  CallId,
  CallRefusal,
  Claimant,
  ClaimOutcome,
  EntryId,
  KnownPlacement,
} from "../peer/peer-link.ts";
import { OWNER_HOPS_MAX, RETRY_AFTER_S } from "../server-limits.ts";
import type { EntryContext } from "./entry-context.ts";
import { mayBeHandedOut, type HeldCall } from "./held-call.ts";
import { TunnelIndex } from "./tunnel-index.ts";

export class CallTable {
  readonly #context: EntryContext;
  readonly #calls = new Map<CallId, HeldCall>();
  readonly #byTunnel = new TunnelIndex<HeldCall>();
  readonly #onEmpty = new Set<() => void>();

  constructor(context: EntryContext) {
    this.#context = context;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Takes a call on, submits it to its owner and watches its deadline. `hint`: where to look first. */
  start(call: HeldCall, hint: KnownPlacement | undefined): void {
    const { runtime, metrics } = this.#context;
    this.#calls.set(call.callId, call);
    this.#byTunnel.add(call.tunnel, call);
    metrics.callsHeld.set(this.#calls.size);
    call.deadlineTimer = runtime.schedule(call.deadlineAtMs - runtime.monotonicMs(), () =>
      this.#expire(call),
    );
    this.#submit(call, hint, 0);
  }

  /** The call with this id if it belongs to `tunnel` and still waits for its end. */
  find(callId: CallId, tunnel: TunnelId): HeldCall | undefined {
    const call = this.#calls.get(callId);
    return call?.tunnel === tunnel ? call : undefined;
  }

  /** The shard will not take the call. */
  refuse(callId: CallId, refusal: CallRefusal): void {
    const call = this.#calls.get(callId);
    if (call === undefined || mayBeHandedOut(call)) return;
    if (refusal.kind === "refused") return this.fail(call, refusalError(refusal.code));
    const { placements } = this.#context;
    if (refusal.placement !== undefined) {
      placements.learn(call.tunnel, refusal.placement);
      const isCrossed = refusal.placement.revision <= call.submittedBy;
      if (call.progress.kind === "submitted" && isCrossed) return; // It is where the refusal would send it.
    }
    const asked = call.progress.kind === "submitted" ? call.progress.port.shard : undefined;
    const hops = call.progress.kind === "submitted" ? call.progress.hops + 1 : 0;
    if (hops > OWNER_HOPS_MAX) return this.fail(call, refusalError("tunnel_transport_unavailable"));
    call.progress = { kind: "parked" };
    // Nothing newer is known than what led there: the news is on its way, and brings the call along.
    if (placements.best(call.tunnel)?.shard !== asked) this.#submit(call, undefined, hops);
  }

  /** Grants a call to the entry of a poll, once (I3). */
  claim(callId: CallId, claimant: Claimant): ClaimOutcome {
    const call = this.#calls.get(callId);
    if (call === undefined) return { kind: "gone" };
    switch (call.progress.kind) {
      case "parked":
        return { kind: "gone" }; // An offer of a former owner: the call goes to the present one.
      case "submitted": {
        call.progress = { kind: "claimed", port: call.progress.port, claimant, isLost: false };
        const remainingMs = Math.max(0, call.deadlineAtMs - this.#context.runtime.monotonicMs());
        return { kind: "granted", command: call.command, remainingMs };
      }
      case "claimed":
        return { kind: call.progress.isLost ? "gone" : "busy" };
      case "handed-out":
        return { kind: "gone" };
    }
  }

  /** What became of a grant. */
  settle(callId: CallId, claimant: Claimant, outcome: "written" | "not-written"): void {
    const call = this.#calls.get(callId);
    if (call?.progress.kind !== "claimed" || call.progress.claimant.pollId !== claimant.pollId) return;
    const { port, isLost } = call.progress;
    if (outcome === "written") {
      call.progress = { kind: "handed-out", port };
      const { instance } = claimant;
      this.#context.logger.debug("call-handed-out", { callId, tunnel: call.tunnel, instance });
      return;
    }
    call.progress = { kind: "submitted", port, hops: 0 };
    if (isLost) this.#submit(call, undefined, 0); // Its shard was told to forget it meanwhile.
  }

  /** Ends a call with an error. */
  fail(call: HeldCall, error: ProtocolError): void {
    if (!this.#remove(call, callOutcome(error.code))) return;
    this.#forgetAtShard(call);
    call.answer.fail(error);
  }

  /** Ends a call whose answer was given by `write`. */
  finish(call: HeldCall, outcome: CallOutcome, write: () => void): void {
    if (!this.#remove(call, outcome)) return;
    this.#forgetAtShard(call);
    write();
  }

  /** The caller hung up (T13). */
  abandon(call: HeldCall): void {
    if (!this.#remove(call, "caller_gone")) return;
    call.answer.abandon();
    if ("port" in call.progress) call.progress.port.withdrawCall(call.tunnel, call.callId);
  }

  /** Ends the calls of a tunnel that was deleted: nobody can answer them any more. */
  tunnelDeleted(tunnel: TunnelId): void {
    for (const call of this.#byTunnel.of(tunnel)) this.#failAs(call, "tunnel_not_found");
  }

  /** A tunnel was placed elsewhere: its calls that nobody claimed go to the new owner. */
  placementChanged(tunnel: TunnelId): void {
    const shard = this.#context.placements.best(tunnel)?.shard;
    for (const call of this.#byTunnel.of(tunnel)) {
      const isThere = "port" in call.progress && call.progress.port.shard === shard;
      if (!isThere && !mayBeHandedOut(call)) this.#submit(call, undefined, 0);
    }
  }

  /** Shards came within reach or went out of it: their unclaimed calls are submitted again, or parked. */
  shardsChanged(shards: ReadonlySet<ShardId>): void {
    for (const call of this.#calls.values()) {
      if (mayBeHandedOut(call)) continue;
      const shard = "port" in call.progress ? call.progress.port.shard : this.#bestShard(call);
      if (shard === undefined || shards.has(shard)) this.#submit(call, undefined, 0);
    }
  }

  /** An entry is lost for good: what it claimed and never settled stays unknown (I3). */
  claimantLost(entry: EntryId): void {
    for (const call of this.#calls.values()) {
      if (call.progress.kind !== "claimed" || call.progress.claimant.entry !== entry) continue;
      call.progress = { ...call.progress, isLost: true };
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
    this.fail(call, mayBeHandedOut(call) ? unknownOutcome() : refusalError(code));
  }

  #submit(call: HeldCall, hint: KnownPlacement | undefined, hops: number): void {
    const { placements, shardPort, runtime, entry } = this.#context;
    const placement = placements.best(call.tunnel, hint);
    if (call.progress.kind === "submitted" && call.progress.port.shard !== placement?.shard) {
      call.progress.port.withdrawCall(call.tunnel, call.callId);
    }
    if (placement === undefined) return this.fail(call, refusalError("tunnel_not_found"));
    const port = shardPort(placement.shard);
    if (port === undefined) {
      call.progress = { kind: "parked" };
      return;
    }
    call.progress = { kind: "submitted", port, hops };
    call.submittedBy = placement.revision;
    port.submitCall({
      callId: call.callId,
      entry,
      tunnel: call.tunnel,
      channel: call.channel,
      payloadBytes: call.command.payload?.byteLength ?? 0,
      remainingMs: Math.max(0, call.deadlineAtMs - runtime.monotonicMs()),
      pinnedTo: call.pinnedTo,
      placement,
    });
  }

  #bestShard(call: HeldCall): ShardId | undefined {
    return this.#context.placements.best(call.tunnel)?.shard;
  }

  #expire(call: HeldCall): void {
    const { progress } = call;
    if (progress.kind === "parked") return this.fail(call, refusalError("tunnel_transport_unavailable"));
    if (progress.kind === "claimed") return this.fail(call, unknownOutcome());
    if (!this.#remove(call, "deadline")) return;
    progress.port.withdrawCall(call.tunnel, call.callId);
    call.answer.fail(new ProtocolError("deadline_exceeded"));
  }

  #forgetAtShard(call: HeldCall): void {
    if (call.progress.kind === "submitted") call.progress.port.withdrawCall(call.tunnel, call.callId);
    else if (call.progress.kind !== "parked") call.progress.port.endCall(call.tunnel, call.callId);
  }

  /** Forgets a call; `false` if it had ended before. */
  #remove(call: HeldCall, outcome: CallOutcome): boolean {
    if (!this.#calls.delete(call.callId)) return false;
    this.#byTunnel.remove(call.tunnel, call);
    const { runtime, metrics, bodies, logger } = this.#context;
    runtime.cancel(call.deadlineTimer);
    bodies.release(call.reservedBytes);
    const durationMs = runtime.monotonicMs() - call.startedAtMs;
    metrics.callsHeld.set(this.#calls.size);
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
