// The one place of a home's live box link: who may take it, and with which generation.
//
// Spec: L23.
// I1  The link in the seat has the highest generation known of the home; a generation is given once.
// I2  A link that is registered again keeps its generation, and takes the seat only if no higher one is known.
// I3  A new link takes the seat from one that is there, until two boxes seem to fight for it (box-guard.ts).

import type { LinkRefusal, RegisteredLink } from "../../peer/link-ports.ts";
import { BoxGuard, type DuplicateIdentity } from "./box-guard.ts";
import type { Generations } from "./generations.ts";
import type { HeldBox, HomeLinks } from "./home-links.ts";

/** What became of a box link that asked for the seat. `isFight`: from now on the incumbent stays for a while. */
export type Seating =
  | { readonly kind: "refused"; readonly refusal: LinkRefusal }
  /** It had the seat already. */
  | { readonly kind: "kept"; readonly box: HeldBox }
  | {
      readonly kind: "taken";
      readonly box: HeldBox;
      readonly replaced: HeldBox | undefined;
      readonly isFight: boolean;
    };

/** The seat of one home. Instants are the shard's monotonic milliseconds. */
export class BoxSeat {
  readonly #links: HomeLinks;
  readonly #generations: Generations;
  readonly #guard = new BoxGuard();
  #lastGeneration = 0;

  constructor(links: HomeLinks, generations: Generations) {
    this.#links = links;
    this.#generations = generations;
  }

  /** Highest generation of any box link known here; 0 = none. */
  get lastGeneration(): number {
    return this.#lastGeneration;
  }

  /** @param placementRevision the newest known of the home: new generations are above it */
  take(link: RegisteredLink, placementRevision: number, nowMs: number): Seating {
    const incumbent = this.#links.box;
    if (incumbent?.link.linkId === link.linkId) {
      incumbent.awaySinceMs = undefined;
      return { kind: "kept", box: incumbent };
    }
    const refusal = this.#refusalOf(link, incumbent, nowMs);
    if (refusal !== undefined) return { kind: "refused", refusal };
    const isFight = isReplacement(link, incumbent) && this.#guard.noteReplacement(nowMs);
    const generation = link.generation ?? this.#generations.next(this.#lastGeneration, placementRevision);
    this.#lastGeneration = generation;
    const box = { link, generation, takenAtMs: nowMs, awaySinceMs: undefined };
    this.#links.box = box;
    return { kind: "taken", box, replaced: incumbent, isFight };
  }

  /** The home has another box: what the one before fought for is over. */
  identityReplaced(): void {
    this.#guard.forget();
  }

  /** Set while newcomers are held off. */
  duplicate(nowMs: number): DuplicateIdentity | undefined {
    return this.#guard.status(nowMs);
  }

  /** Whether nothing would be lost by forgetting it but the last generation. */
  isIdle(nowMs: number): boolean {
    return this.#links.box === undefined && this.#guard.isIdle(nowMs);
  }

  #refusalOf(link: RegisteredLink, incumbent: HeldBox | undefined, nowMs: number): LinkRefusal | undefined {
    if (link.generation !== undefined && link.generation < this.#lastGeneration)
      return { kind: "superseded" };
    if (!isReplacement(link, incumbent)) return undefined;
    const waitMs = this.#guard.holdOff(nowMs);
    return waitMs > 0 ? { kind: "incumbent-stays", waitMs } : undefined;
  }
}

/**
 * Whether a newcomer would take the place of a link that is there. One whose entry is out of reach may well be gone, and
 * one that is registered again is no newcomer.
 */
function isReplacement(link: RegisteredLink, incumbent: HeldBox | undefined): boolean {
  return link.generation === undefined && incumbent !== undefined && incumbent.awaySinceMs === undefined;
}
