// Certificates for a service of links in tests: good ones, and each kind of bad one.

import { createHash, X509Certificate } from "node:crypto";
import { makeAuthority, makeNodeCertificate, type MadeCertificate } from "@moor/server/certificates";
import { createNodeRuntime, type Runtime } from "@moor/runtime";

/** What a client must think of a certificate. */
export type CertificateKind = "good" | "other-name" | "untrusted" | "expired" | "not-yet-valid";

/** The certificates of one service. */
export interface LinkCertificates {
  /** PEM of the authority that clients trust. */
  readonly ca: string;
  /** The certificate of each kind with its key, PEM. */
  get(kind: CertificateKind): { readonly cert: string; readonly key: string };
  /** SHA-256 of the good certificate's public key, base64: what Chromium's `--ignore-certificate-errors-spki-list` takes. */
  readonly spkiHash: string;
}

const YEAR_MS = 365 * 24 * 60 * 60 * 1_000;
const REAL = createNodeRuntime();

/** Makes certificates for these host names. */
export function makeLinkCertificates(hosts: readonly string[]): LinkCertificates {
  const authority = makeAuthority("test", termsAt(0));
  const others = makeAuthority("test", termsAt(0));
  const issue = (by: MadeCertificate, names: readonly string[], offsetMs: number) => {
    const identity = { residency: "test", nodeId: "links" };
    const made = makeNodeCertificate(by, identity, names, termsAt(offsetMs));
    return { cert: made.certificate, key: made.key.reveal() };
  };
  const made: Readonly<Record<CertificateKind, { readonly cert: string; readonly key: string }>> = {
    good: issue(authority, hosts, 0),
    "other-name": issue(authority, ["other.invalid"], 0),
    untrusted: issue(others, hosts, 0),
    expired: issue(authority, hosts, -YEAR_MS),
    "not-yet-valid": issue(authority, hosts, YEAR_MS),
  };
  const key = new X509Certificate(made.good.cert).publicKey.export({ type: "spki", format: "der" });
  return {
    ca: authority.certificate,
    get: (kind) => made[kind],
    spkiHash: createHash("sha256").update(key).digest("base64"),
  };
}

/** A hundred days from a moment that is so far from now. */
function termsAt(offsetMs: number) {
  const runtime: Pick<Runtime, "wallMs" | "randomBytes"> = {
    wallMs: () => REAL.wallMs() + offsetMs,
    randomBytes: (byteCount) => REAL.randomBytes(byteCount),
  };
  return { days: 100, runtime };
}
