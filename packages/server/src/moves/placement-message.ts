// Placements that the mover tells other nodes before the feed does.
//
// Spec: R22; design "Moves" 3; docs/protocol/peer-link.md.

import { parseTenantId, type TenantId } from "../directory/tenant-id.ts";
import type { KnownPlacement } from "../peer/peer-link.ts";
import { encodePlacement, MalformedHead, read, type RawHead } from "../peer/peer-messages.ts";

/** A tenant's new placement. */
export interface PlacementNews {
  readonly tenant: TenantId;
  readonly placement: KnownPlacement;
}

/** The message. */
export function encodePlacements(news: readonly PlacementNews[]): RawHead {
  const items = news.map(({ tenant, placement }) => ({ tenant, placement: encodePlacement(placement) }));
  return { t: "placements", items };
}

/** The news in a message. */
export function readPlacements(head: RawHead): readonly PlacementNews[] {
  return read.list(head, "items").map((item) => {
    const fields = read.object({ item }, "item");
    const tenant = parseTenantId(read.text(fields, "tenant"));
    if (tenant === undefined) throw new MalformedHead("tenant");
    return { tenant, placement: read.placement(fields) };
  });
}
