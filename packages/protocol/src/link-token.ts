// The token of an app or an extension: which home it is for, and its secret.
// Spec: L7, L30.   Pure.
//
// I1  What is refused here gets the same 401 or 4401 as an unknown home or a wrong secret: nothing tells them apart.

import { LINK_TOKEN_BYTES_MAX } from "./link-limits.ts";
import { parseHomeId, type HomeId } from "./link-names.ts";

/** A token taken apart. `secret` never reaches a log, an error or a URL. */
export interface LinkToken {
  readonly home: HomeId;
  /** `[0-9A-Za-z_-]+`. */
  readonly secret: string;
}

/** Reads `<home>.<secret>`, split at the first dot, at most 256 bytes; `undefined` for anything else. Spec L7. */
export function parseLinkToken(text: string): LinkToken | undefined {
  const dot = text.indexOf(".");
  // Both parts are ASCII where they pass, so characters count bytes.
  if (dot < 0 || text.length > LINK_TOKEN_BYTES_MAX) return undefined;
  const home = parseHomeId(text.slice(0, dot));
  const secret = text.slice(dot + 1);
  return home !== undefined && /^[0-9A-Za-z_-]+$/.test(secret) ? { home, secret } : undefined;
}
