// Ends of offers: most of them send all of an offer's calls one way.

import type { CallId, OfferEnd } from "./peer-link.ts";

const NONE: readonly CallId[] = [];

/** The end of an offer whose calls went the ways told; none went any other. */
export function offerEnd(ways: Partial<OfferEnd>): OfferEnd {
  return { written: NONE, returned: NONE, blocked: NONE, gone: NONE, ...ways };
}
