// A node's certificate, its key and the authority it trusts, read again when the files change.
//
// Spec: docs/protocol/peer-link.md, "Certificates".
// I1  Files that cannot be used (half written, key of another certificate) are warned about, and the ones before stay.
// I2  Every connection is opened with the newest usable files; links that are up keep theirs.

import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext, type SecureContext } from "node:tls";
import { ConfigError, errorCodeOf, type Logger, type Runtime } from "@moor/runtime";
import { type CertificateIdentity, encodeNodeUri, parseCertificateIdentity } from "./certificate-identity.ts";
import { CERTIFICATE_LOOK_MS, CERTIFICATE_WARN_MS } from "./transport-limits.ts";

/** Paths of PEM files. */
export interface TlsFilePaths {
  /** Certificates of the authority; several while one replaces another. */
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** What both sides of a TLS connection are given. */
export interface TlsMaterial {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly context: SecureContext;
}

/** The files and what was last read from them. */
export class TlsFiles {
  readonly #paths: TlsFilePaths;
  readonly #own: CertificateIdentity;
  readonly #runtime: Runtime;
  readonly #logger: Logger;
  #material: TlsMaterial;
  #stamp: string;
  #lookedAtMs: number;
  /** What was wrong with the files when it was last said. */
  #lastFailure: string | undefined;

  /** Reads the files. Throws ConfigError when they cannot be used or name another node. */
  constructor(paths: TlsFilePaths, own: CertificateIdentity, runtime: Runtime, logger: Logger) {
    this.#paths = paths;
    this.#own = own;
    this.#runtime = runtime;
    this.#logger = logger;
    this.#stamp = this.#readStamp();
    this.#lookedAtMs = runtime.monotonicMs();
    this.#material = this.#read();
  }

  /** The newest usable material; looks at the files at most once per CERTIFICATE_LOOK_MS. */
  current(): TlsMaterial {
    const nowMs = this.#runtime.monotonicMs();
    if (nowMs - this.#lookedAtMs < CERTIFICATE_LOOK_MS) return this.#material;
    this.#lookedAtMs = nowMs;
    try {
      const stamp = this.#readStamp();
      if (stamp === this.#stamp) return this.#material;
      this.#material = this.#read();
      this.#stamp = stamp;
      this.#lastFailure = undefined;
      this.#logger.info("peer-certificate-read", { file: this.#paths.certFile });
    } catch (error) {
      const reason = error instanceof Error ? error.message : "not an Error";
      if (reason === this.#lastFailure) return this.#material;
      this.#lastFailure = reason;
      this.#logger.warn("peer-certificate-unusable", { file: this.#paths.certFile, reason });
    }
    return this.#material;
  }

  #readStamp(): string {
    const { caFile, certFile, keyFile } = this.#paths;
    return [caFile, certFile, keyFile].map((file) => stampOf(file)).join(" ");
  }

  #read(): TlsMaterial {
    const { caFile, certFile, keyFile } = this.#paths;
    const material = {
      ca: readFileSync(caFile),
      cert: readFileSync(certFile),
      key: readFileSync(keyFile),
    };
    this.#checkOwn(material.cert);
    try {
      return { ...material, context: createSecureContext({ ...material, minVersion: "TLSv1.3" }) };
    } catch (error) {
      const code = errorCodeOf(error, "unreadable");
      throw new ConfigError("internal.tls", code, `PEM files that belong together: ${certFile}, ${keyFile}`);
    }
  }

  /** A node with another node's certificate would be refused by everyone: better said at its start. */
  #checkOwn(pem: Buffer): void {
    const { certFile } = this.#paths;
    const certificate = parsePem(pem);
    const uri = encodeNodeUri(this.#own);
    if (certificate === undefined) {
      throw new ConfigError("internal.tls.certFile", `${certFile} (no certificate)`, "a PEM certificate");
    }
    const identity = parseCertificateIdentity(certificate.subjectAltName);
    if (identity === undefined || encodeNodeUri(identity) !== uri) {
      const named = identity === undefined ? "no node" : encodeNodeUri(identity);
      throw new ConfigError("internal.tls.certFile", `${certFile} for ${named}`, `a certificate for ${uri}`);
    }
    const leftMs = certificate.validToDate.getTime() - this.#runtime.wallMs();
    if (leftMs > CERTIFICATE_WARN_MS) return;
    const days = Math.floor(leftMs / (24 * 60 * 60 * 1_000));
    this.#logger.warn("peer-certificate-expires", { file: certFile, validTo: certificate.validTo, days });
  }
}

function parsePem(pem: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Changes when the file is written or replaced. Throws ConfigError when there is none. */
function stampOf(file: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(file);
    return `${ino}:${size}:${mtimeMs}`;
  } catch (error) {
    const code = errorCodeOf(error, "unreadable");
    throw new ConfigError("internal.tls", `${file} (${code})`, "a file that this node can read");
  }
}
