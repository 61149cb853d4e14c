// A poll at the entry that holds its agent's request, and where it stands with the tunnel's owner.
//
// Spec: T4, T12.

import type { TimerHandle } from "@moor/runtime";
import type { HttpExchange } from "../http/http-exchange.ts";
import type { PollId, ShardPort } from "../peer/peer-link.ts";
import type { CorrectablePoll } from "./correction-policy.ts";
import type { PollQuery } from "./poll-query.ts";

/** A poll as it arrived. */
export interface ArrivedPoll extends CorrectablePoll {
  readonly pollId: PollId;
  readonly keyId: string;
  readonly exchange: HttpExchange;
  readonly query: PollQuery;
}

/** Where a held poll stands. */
export type PollState =
  | { readonly kind: "parked" }
  | { readonly kind: "registered"; readonly port: ShardPort }
  /** Claims are under way; `isOver`: its time ran out meanwhile. */
  | { readonly kind: "claiming"; readonly port: ShardPort; isOver: boolean };

/** A poll at the entry that holds it. */
export interface HeldPoll {
  readonly poll: ArrivedPoll;
  state: PollState;
  /** Revision of the placement it was last registered by; an ending that knows no newer one crossed it on the way. */
  registeredBy: number;
  hops: number;
  holdTimer: TimerHandle | undefined;
}
