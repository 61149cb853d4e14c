// Claims the calls of one offer, each from the entry that holds it, and says when all have answered.
//
// Spec: T4. Within one process every answer comes at once, so that nothing waits.
// I1  Each call of the offer ends up in exactly one of granted, blocked, gone; granted ones keep the offer's order.

import type {
  CallId,
  Claimant,
  ClaimOutcome,
  EntryId,
  EntryPort,
  HandedOutCommand,
  Offer,
} from "../peer/peer-link.ts";

/** A granted call and the way back to its entry. */
export interface GrantedCall extends HandedOutCommand {
  readonly port: EntryPort;
}

export interface Claims {
  readonly granted: readonly GrantedCall[];
  readonly refused: { readonly blocked: readonly CallId[]; readonly gone: readonly CallId[] };
}

/** Claims every call of `offer`; calls `done` once. */
export function claimOffer(
  context: { readonly entryPort: (entry: EntryId) => EntryPort | undefined },
  offer: Offer,
  claimant: Claimant,
  done: (claims: Claims) => void,
): void {
  const granted = new Map<CallId, GrantedCall>();
  const blocked: CallId[] = [];
  const gone: CallId[] = [];
  let waiting = offer.calls.length;
  const take = (callId: CallId, port: EntryPort | undefined, outcome: ClaimOutcome) => {
    if (outcome.kind === "granted" && port !== undefined) {
      const { command, remainingMs } = outcome;
      granted.set(callId, { callId, command, remainingMs, port });
    } else if (outcome.kind === "gone") gone.push(callId);
    else blocked.push(callId);
    waiting -= 1;
    if (waiting > 0) return;
    const inOrder = offer.calls.flatMap((call) => granted.get(call.callId) ?? []);
    done({ granted: inOrder, refused: { blocked, gone } });
  };
  for (const { callId, entry } of offer.calls) {
    const port = context.entryPort(entry);
    if (port === undefined) take(callId, undefined, { kind: "busy" });
    else port.claimCall(callId, claimant, (outcome) => take(callId, port, outcome));
  }
}
