// `--health`: two small pages for whoever supervises the agent.
//
// Spec: T24.
// I1  It says ready or why not in fixed words: no host, path, token or error text. I2  It takes GET and HEAD and reads no body.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "@moor/runtime";
import type { Readiness } from "./readiness.ts";

/** Where to listen. */
export interface HealthAddress {
  /** Host to bind; loopback unless its owner chose otherwise. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** A listener that answers. */
export interface HealthListener {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Reads `HOST:PORT`, `[IPV6]:PORT` or `PORT` (on 127.0.0.1).
 *
 * @throws ConfigError for anything else
 */
export function parseHealthAddress(option: string, text: string): HealthAddress {
  const match = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):)?([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new ConfigError(option, JSON.stringify(text), "HOST:PORT with a port from 0 to 65535");
  }
  return { host: (match[1] ?? "127.0.0.1").replace(/^\[|\]$/g, ""), port };
}

/**
 * Answers `/healthz` (200 while the process lives) and `/readyz` (200 or 503) on `address`.
 *
 * @throws ConfigError if the address cannot be bound
 */
export async function listenForHealth(
  option: string,
  address: HealthAddress,
  readiness: () => Readiness,
): Promise<HealthListener> {
  const server = createServer((request, response) => {
    const [status, text] = answerTo(request.method ?? "", request.url ?? "", readiness);
    response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
    response.end(request.method === "HEAD" ? undefined : text);
  });
  await listening(option, server, address);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answerTo(method: string, url: string, readiness: () => Readiness): [status: number, body: string] {
  const [path] = url.split("?", 1);
  if (path !== "/healthz" && path !== "/readyz") return [404, '{"error":"not_found"}'];
  if (method !== "GET" && method !== "HEAD") return [405, '{"error":"method_not_allowed"}'];
  if (path === "/healthz") return [200, '{"status":"ok"}'];
  const ready = readiness();
  return ready.isReady
    ? [200, '{"ready":true}']
    : [503, JSON.stringify({ ready: false, reason: ready.reason })];
}

function listening(option: string, server: Server, { host, port }: HealthAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        new ConfigError(option, `${host}:${port} (${error.code ?? "unusable"})`, "an address that is free"),
      ),
    );
    server.listen(port, host, resolve);
  });
}
