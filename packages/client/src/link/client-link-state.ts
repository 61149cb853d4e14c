// What a link shows of itself.
//
// Spec: L15, L16, L23; docs/protocol/link-states.md lists the codes of `why`.
// I1  A state is told when it differs from the one before. I2  No state holds a token, a key or what a peer wrote.

import type { LinkState, LinkTrouble } from "@moor/protocol";
import type { Runtime } from "@moor/runtime/portable";

/** A link's state. Times are on the runtime's monotonic clock, milliseconds. */
export type ClientLinkState =
  /** Not started yet. */
  | { readonly kind: "idle" }
  /** Belongs to no home (L18). */
  | { readonly kind: "unlinked" }
  | { readonly kind: "connecting"; readonly host: string }
  | {
      readonly kind: "online";
      readonly host: string;
      readonly sinceMs: number;
      /** As hello_ok says it, decimal; it only rises. */
      readonly generation: string;
    }
  | ({ readonly kind: "reconnecting" } & LinkAbsence)
  /** Someone has to act for it to help; it is tried again all the same. */
  | ({ readonly kind: "refused" } & LinkAbsence)
  | { readonly kind: "stopped" };

/** Why there is no link, and when the next dial is. */
export interface LinkAbsence {
  /** Dialled next. */
  readonly host: string;
  readonly untilMs: number;
  /** From now. */
  readonly waitMs: number;
  /** A code of docs/protocol/link-states.md. */
  readonly why: LinkTrouble;
  /** With the codes that a wrong clock explains: what this machine takes for now, RFC 3339. */
  readonly clock?: string;
}

/** Codes of certificates that are good at another time. */
const CLOCK_CODES: ReadonlySet<string> = new Set(["tls-expired", "tls-not-yet-valid"]);

/** Tells states that differ. */
export class ClientStateTeller {
  readonly #runtime: Pick<Runtime, "monotonicMs" | "wallMs">;
  readonly #onState: (state: ClientLinkState) => void;
  #told = "";

  constructor(runtime: Pick<Runtime, "monotonicMs" | "wallMs">, onState: (state: ClientLinkState) => void) {
    this.#runtime = runtime;
    this.#onState = onState;
  }

  /** @param generation of the link that is online */
  tell(state: LinkState | { readonly kind: "stopped" }, generation = ""): void {
    const key = JSON.stringify({ ...state, generation: state.kind === "online" ? generation : "" });
    if (key === this.#told) return;
    this.#told = key;
    this.#onState(this.#shown(state, generation));
  }

  #shown(state: LinkState | { readonly kind: "stopped" }, generation: string): ClientLinkState {
    switch (state.kind) {
      case "online":
        return { ...state, generation };
      case "reconnecting":
      case "refused": {
        const waitMs = Math.max(0, state.untilMs - this.#runtime.monotonicMs());
        const clock = CLOCK_CODES.has(state.why) && { clock: this.#clock() };
        return { ...state, waitMs, ...clock };
      }
      case "idle":
      case "unlinked":
      case "stopped":
      case "connecting":
        return state;
    }
  }

  #clock(): string {
    const date = new Date(this.#runtime.wallMs());
    return Number.isNaN(date.getTime()) ? "unreadable" : date.toISOString();
  }
}
