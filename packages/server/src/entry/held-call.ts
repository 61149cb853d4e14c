// A call at the entry that holds its caller.
//
// Spec: T6, T7, T9, T11, T13.
// I1  A call ends once: by a final, a refusal, its deadline or its caller leaving. What comes later finds nothing.
// I2  Only this entry says who may write its command: `progress` is the one authority on whether it was handed out.

import type { ChannelName, InstanceId, TunnelId } from "@moor/protocol";
import type { TimerHandle } from "@moor/runtime";
import type { CallId, Claimant, EncodedCommand, ShardPort } from "../peer/peer-link.ts";
import type { CallerAnswer } from "./caller-answer.ts";

/** What the caller sent: decides how its end looks. */
export type CallKind =
  /** A JSON-RPC request: ends with the final. `isInitialize` opens a session (T8). */
  | { readonly kind: "request"; readonly isInitialize: boolean }
  /** A JSON-RPC notification or response: ends with 202. */
  | { readonly kind: "one-way" }
  /** `DELETE` of a session. */
  | { readonly kind: "session-termination" };

/** How far a call has come towards an agent. */
export type CallProgress =
  /** Its owner cannot be reached now: submitted as soon as it can. */
  | { readonly kind: "parked" }
  /** Known to its owner's mailbox, claimed by nobody. */
  | { readonly kind: "submitted"; readonly port: ShardPort; readonly hops: number }
  /** A poll's entry is writing it, or was lost while doing so. */
  | {
      readonly kind: "claimed";
      readonly port: ShardPort;
      readonly claimant: Claimant;
      readonly isLost: boolean;
    }
  | { readonly kind: "handed-out"; readonly port: ShardPort };

export interface HeldCall {
  readonly callId: CallId;
  readonly tunnel: TunnelId;
  readonly channel: ChannelName;
  readonly kind: CallKind;
  readonly command: EncodedCommand;
  readonly pinnedTo: InstanceId | undefined;
  readonly answer: CallerAnswer;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  /** Bytes reserved in the node's budget until the call ends. */
  readonly reservedBytes: number;
  progress: CallProgress;
  /** Revision of the placement it was last submitted by; a refusal that knows no newer one crossed it on the way. */
  submittedBy: number;
  deadlineTimer: TimerHandle | undefined;
}

/** Whether an agent may have the call's command: then it must never be given again. */
export function mayBeHandedOut(call: HeldCall): boolean {
  return call.progress.kind === "claimed" || call.progress.kind === "handed-out";
}
