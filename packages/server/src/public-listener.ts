// The public listener of a node: agents, callers, load balancers.

import { openHttpListener, type HttpListener, type UpgradeHandler } from "./http/http-listener.ts";
import type { HttpExchange } from "./http/http-exchange.ts";
import type { NodeOptions } from "./node-options.ts";

/** Binds and serves. Throws ConfigError for the setting at fault. */
export function openPublicListener(
  options: NodeOptions,
  isLeaving: () => boolean,
  handle: (exchange: HttpExchange) => Promise<void>,
  upgrades?: UpgradeHandler,
): Promise<HttpListener> {
  const { host, port, runtime, logger, publicTls } = options;
  return openHttpListener({
    host,
    port,
    portOption: options.optionNames?.publicPort ?? "--port",
    ...(publicTls === undefined ? {} : { tls: publicTls }),
    isPortShared: options.isPortShared ?? false,
    ...(options.publicFd === undefined ? {} : { fd: options.publicFd }),
    runtime,
    logger,
    isLeaving,
    handle,
    ...(upgrades === undefined ? {} : { upgrades }),
  });
}

/** The URL of a listener as a peer on this machine would write it. */
export function listenerUrl(host: string, port: number, isTls = false): string {
  const named = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${isTls ? "https" : "http"}://${named.includes(":") ? `[${named}]` : named}:${port}`;
}
