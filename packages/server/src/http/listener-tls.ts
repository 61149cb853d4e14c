// Certificate and key of an HTTPS listener, read again when the files change.
//
// I1  Files that cannot be used at the start end it with ConfigError; later they are warned about and the old ones stay.

import { readFileSync, statSync } from "node:fs";
import type { Server as TlsServer } from "node:https";
import { createSecureContext } from "node:tls";
import { ConfigError, errorCodeOf, type Logger, type Runtime, type TimerHandle } from "@moor/runtime";
import type { TlsFiles } from "../node-options.ts";

/** How often the files are looked at. Milliseconds: certificates are renewed days before they end. */
const LOOK_INTERVAL_MS = 10_000;

/** PEM texts of a listener. */
export interface ListenerCertificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Reads and checks the files. Throws ConfigError naming `option`. */
export function readListenerCertificate(files: TlsFiles, option: string): ListenerCertificate {
  try {
    const pair = { cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) };
    createSecureContext(pair);
    return pair;
  } catch (error) {
    const code = errorCodeOf(error, "unusable");
    const got = `${files.certFile} and ${files.keyFile} (${code})`;
    throw new ConfigError(option, got, "a PEM certificate and its private key that this user can read");
  }
}

/** Gives `server` new certificates as they come; returns how to stop. */
export function followCertificate(
  server: TlsServer,
  files: TlsFiles,
  { runtime, logger }: { readonly runtime: Runtime; readonly logger: Logger },
): () => void {
  let stamp = stampOf(files);
  let timer: TimerHandle;
  const look = () => {
    const now = stampOf(files);
    if (now !== stamp) {
      stamp = now;
      try {
        server.setSecureContext(readListenerCertificate(files, "public.tls"));
        logger.info("certificate-reloaded");
      } catch {
        logger.warn("certificate-unusable");
      }
    }
    timer = runtime.schedule(LOOK_INTERVAL_MS, look);
  };
  timer = runtime.schedule(LOOK_INTERVAL_MS, look);
  return () => runtime.cancel(timer);
}

function stampOf(files: TlsFiles): string {
  return [files.certFile, files.keyFile]
    .map((file) => {
      const stat = statSync(file, { throwIfNoEntry: false });
      return stat === undefined ? "none" : `${stat.mtimeMs}:${stat.size}:${stat.ino}`;
    })
    .join(" ");
}
