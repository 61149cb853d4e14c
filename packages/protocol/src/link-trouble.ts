// Why a client has no link: the codes that its state, its logs and its user are shown.
// Spec: L10, L11, L15, L16, L23, L27–L30.   Pure.
//
// I1  A code holds nothing a peer wrote: no host, no reason, no header.

import { CLOSE_CODE } from "./link-names.ts";

/** One row of the table. */
export interface LinkTroubleRow {
  /** Whether trying again will not help until someone acts; it is tried again all the same. */
  readonly isRefusal: boolean;
  /** One sentence for people. */
  readonly summary: string;
}

function passing(summary: string): LinkTroubleRow {
  return { isRefusal: false, summary };
}

function refusal(summary: string): LinkTroubleRow {
  return { isRefusal: true, summary };
}

/** The troubles of a link: before hello_ok a failed dial, after it a lost link. */
export const LINK_TROUBLE = {
  dns: passing("The host's name has no address."),
  refused: passing("Nothing listens at the host's address."),
  unreachable: passing("The host's network cannot be reached."),
  connect: passing("The host cannot be reached, and the platform does not say why."),
  tls: passing("The secure connection broke before it was made."),
  "tls-name": refusal("The host's certificate is for another name."),
  "tls-untrusted": refusal("The issuer of the host's certificate is not trusted here."),
  "tls-expired": refusal("The host's certificate has expired; or is this machine's clock wrong?"),
  "tls-not-yet-valid": refusal("The host's certificate is not valid yet; or is this machine's clock wrong?"),
  certificate: refusal(
    "The host's certificate is not valid for its name now; is this machine's clock right?",
  ),
  unavailable: passing("The service is busy or restarting, and asks to come back."),
  "not-a-link": refusal("Something answered that is not the service, such as a captive portal or a proxy."),
  "no-answer": passing("The host took the connection and did not answer in time."),
  "no-hello-ok": passing("The host did not finish the handshake in time."),
  closed: passing("The link was closed before its handshake was done."),
  "bad-frame": refusal("The host sent something that is not a frame of the link."),
  "wrong-host": refusal("The handshake was made for another host or home than the one dialled for."),
  "unknown-key": refusal("The handshake is signed by a service key this client does not know."),
  "bad-signature": refusal("The handshake's signature is not valid."),
  protocol: refusal("The service could not read what this client sent."),
  auth: refusal("The service does not accept this client's token or key."),
  "hello-late": passing("The service waited too long for this client's handshake."),
  replaced: refusal("Another box linked with this one's identity."),
  busy: passing("The service holds this client off for a while."),
  restarting: passing("The service restarts."),
  redirected: passing("The home has moved; its new host is dialled next."),
  "redirect-repeated": passing("The host redirected to, redirected again."),
  "redirect-refused": refusal("The service redirected to a host this client may not follow to."),
  "redirect-unfollowed": refusal("The home is held by another host, and this client does not follow."),
  lost: passing("The connection ended."),
  silent: passing("The service fell silent."),
} as const satisfies Readonly<Record<string, LinkTroubleRow>>;

/** A code of the table. */
export type LinkTrouble = keyof typeof LINK_TROUBLE;

const OF_CLOSE: ReadonlyMap<number, LinkTrouble> = new Map([
  [CLOSE_CODE.protocol, "protocol"],
  [CLOSE_CODE.auth, "auth"],
  [CLOSE_CODE.helloTimeout, "hello-late"],
  [CLOSE_CODE.replaced, "replaced"],
  [CLOSE_CODE.busy, "busy"],
  [CLOSE_CODE.restart, "restarting"],
  // The library's own closes for frames it cannot take are the same to a client (L27).
  [1007, "protocol"],
  [1009, "protocol"],
]);

/** What a close of the peer's means; `otherwise` for codes that say nothing. */
export function troubleOfClose(closeCode: number | undefined, otherwise: LinkTrouble): LinkTrouble {
  return (closeCode === undefined ? undefined : OF_CLOSE.get(closeCode)) ?? otherwise;
}

/** What an HTTP answer means that came in place of the 101: redirects and successes are no service of ours (L9). */
export function troubleOfUpgrade(status: number): LinkTrouble {
  return status === 429 || status >= 500 ? "unavailable" : "not-a-link";
}
