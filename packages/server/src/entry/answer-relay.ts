// Takes an agent's answer, at whichever node it arrived, to the entry that holds the call.
//
// Spec: T6, R20; design "Shape": the command token leads there, so moves, drains and deaths of shards do not matter.
// I1  What is taken is judged by the call's own entry: only it can open its tokens and knows its calls.

import type { InstanceId, TunnelId } from "@moor/protocol";
import type { EntryId } from "../peer/peer-link.ts";
import type { AgentResponse } from "./agent-response.ts";

/** An agent's POST as far as the node where it arrived can judge it. */
export interface ArrivedAnswer {
  readonly tunnel: TunnelId;
  /** `X-Tunnel-Shard-Token` as sent. */
  readonly token: string;
  readonly content:
    | {
        readonly kind: "response";
        readonly response: AgentResponse;
        readonly instance: InstanceId;
        /** Whether the instance declared `proc_affinity` for the channel named. Spec T8. */
        readonly affineChannels: readonly string[];
      }
    /** A body that cannot be used; `isFinal`: the caller waits for this very answer. */
    | {
        readonly kind: "unusable";
        readonly code: "invalid_agent_response" | "agent_response_too_large";
        readonly isFinal: boolean;
      };
}

/** What the call's entry says. `unavailable`: it could not be asked; the agent may try again. */
export type AnswerOutcome = "accepted" | "not-pending" | "mismatch" | "unavailable";

export interface AnswerRelay {
  deliver(entry: EntryId, answer: ArrivedAnswer): Promise<AnswerOutcome>;
}
