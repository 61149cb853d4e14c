// A good certificate for a public listener as files: what the shards under one base host share.
//
// Spec: L9, L10. I1  The files are in the folder given, the key of mode 0600; nothing outlives it.

import { writeFileSync } from "node:fs";
import path from "node:path";
import { makeLinkCertificates } from "./link-certificates.ts";

/** What both sides are configured with. */
export interface ListenerCertificate {
  /** Files of the listener. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The authority that clients trust: its file and its text, PEM. */
  readonly caFile: string;
  readonly ca: string;
}

/** Makes one for `hosts`: DNS names, wildcards among them, and addresses. */
export function writeListenerCertificate(dir: string, hosts: readonly string[]): ListenerCertificate {
  const certificates = makeLinkCertificates(hosts);
  const { cert, key } = certificates.get("good");
  const file = (name: string) => path.join(dir, name);
  const files = { certFile: file("public.crt"), keyFile: file("public.key"), caFile: file("public-ca.crt") };
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key, { mode: 0o600 });
  writeFileSync(files.caFile, certificates.ca);
  return { ...files, ca: certificates.ca };
}
