// An authority and nodes' certificates in a folder of a test.

import { writeFileSync } from "node:fs";
import path from "node:path";
import { createNodeRuntime } from "@moor/runtime";
import {
  makeAuthority,
  makeNodeCertificate,
  type MadeCertificate,
} from "../../src/peer/transport/make-certificate.ts";
import type { TlsFilePaths } from "../../src/peer/transport/tls-files.ts";

const runtime = createNodeRuntime();

/** Files of one authority; `ca` is its name among others in the same folder. */
export class ClusterFiles {
  readonly #dir: string;
  readonly #ca: string;
  readonly #residency: string;
  readonly authority: MadeCertificate;

  constructor(
    dir: string,
    options: { readonly ca?: string; readonly residency?: string; readonly days?: number } = {},
  ) {
    this.#dir = dir;
    this.#ca = options.ca ?? "ca";
    this.#residency = options.residency ?? "global";
    this.authority = makeAuthority(this.#residency, { days: options.days ?? 30, runtime });
    writeFileSync(this.#path(`${this.#ca}.crt`), this.authority.certificate);
  }

  /** Writes (again) a node's certificate and key; gives their paths. */
  node(nodeId: string, options: { readonly days?: number; readonly residency?: string } = {}): TlsFilePaths {
    const { residency = this.#residency, days = 30 } = options;
    const made = makeNodeCertificate(this.authority, { residency, nodeId }, [], { days, runtime });
    const paths = {
      caFile: this.#path(`${this.#ca}.crt`),
      certFile: this.#path(`${this.#ca}-${nodeId}.crt`),
      keyFile: this.#path(`${this.#ca}-${nodeId}.key`),
    };
    writeFileSync(paths.certFile, made.certificate);
    writeFileSync(paths.keyFile, made.key.reveal(), { mode: 0o600 });
    return paths;
  }

  #path(name: string): string {
    return path.join(this.#dir, name);
  }
}
