// The public listener of a node: agents, callers, boxes, apps, load balancers. It may be there before what serves behind it.
//
// Spec: T1, L24.
// I1  Until it is told who serves, requests wait within the bounds of the waiting room; a balancer that asks whether the
//     node is ready is told no at once, and a page's preflight is answered.

import { ProtocolError } from "@moor/protocol";
import { answerPagePreflight, pageHeaders } from "./entry/link/link-cors.ts";
import { isLinkUpgrade } from "./entry/link/link-listener.ts";
import { replyHealth } from "./entry/public-routes.ts";
import { WaitingRoom } from "./handover/waiting-room.ts";
import type { HttpExchange } from "./http/http-exchange.ts";
import { openHttpListener, type HttpListener, type UpgradeHandler } from "./http/http-listener.ts";
import { refuseUpgrade } from "./http/raw-reply.ts";
import { replyError } from "./http/reply-error.ts";
import type { NodeOptions } from "./node-options.ts";
import { RETRY_AFTER_S } from "./server-limits.ts";

/** What serves behind the listener. */
export interface PublicServices {
  readonly isLeaving: () => boolean;
  readonly handle: (exchange: HttpExchange) => Promise<void>;
  /** Default: no connection is taken over. */
  readonly upgrades?: UpgradeHandler;
}

/** A public listener. */
export interface PublicListener extends HttpListener {
  /** Serves from now on, those first who have waited. */
  admit(services: PublicServices): void;
}

/**
 * Binds. Throws ConfigError for the setting at fault.
 *
 * @param askElsewhere has somebody else answer a request that would have to wait; false when nobody does. Default: nobody.
 */
export async function openPublicListener(
  options: NodeOptions,
  askElsewhere: (exchange: HttpExchange) => Promise<boolean> = async () => false,
): Promise<PublicListener> {
  const { host, port, runtime, logger, publicTls } = options;
  const room = new WaitingRoom(runtime);
  let admitted: PublicServices | undefined;
  const services = () => admitted;
  const serve = async (exchange: HttpExchange): Promise<void> => {
    if (admitted !== undefined) return admitted.handle(exchange);
    if (answerAnyway(exchange) || (await askElsewhere(exchange))) return;
    const end = await room.wait((run) => exchange.onGone(run));
    if (end === "admitted") await services()?.handle(exchange);
    else if (end === "turned-away") turnAway(exchange);
  };
  const upgrades: UpgradeHandler = {
    accepts: (request) =>
      admitted === undefined ? isLinkUpgrade(request) : (admitted.upgrades?.accepts(request) ?? false),
    handle: (request, socket, head) => {
      if (admitted?.upgrades !== undefined) return admitted.upgrades.handle(request, socket, head);
      // Nobody else listens while it waits: an error of it would end this process.
      socket.on("error", ignoreError);
      void room
        .wait((run) => socket.once("close", run))
        .then((end) => {
          const behind = services()?.upgrades;
          if (end === "admitted" && behind !== undefined) behind.handle(request, socket, head);
          else if (end !== "gone") refuseUpgrade(socket, comeBack(), runtime);
        });
    },
    close: () => services()?.upgrades?.close(),
  };
  const listener = await openHttpListener({
    host,
    port,
    portOption: options.optionNames?.publicPort ?? "--port",
    ...(publicTls === undefined ? {} : { tls: publicTls }),
    isPortShared: options.isPortShared ?? false,
    ...(options.publicFd === undefined ? {} : { fd: options.publicFd }),
    runtime,
    logger,
    isLeaving: () => services()?.isLeaving() ?? false,
    handle: serve,
    errorHeaders: pageHeaders,
    upgrades,
  });
  return {
    ...listener,
    admit: (given) => {
      admitted = given;
      room.open();
    },
    close: () => {
      room.close();
      return listener.close();
    },
  };
}

/** Answers what a node answers that serves nothing else: it is not ready, and preflights. False for the rest. */
export function answerAnyway(exchange: HttpExchange): boolean {
  return replyHealth(exchange, () => false) || answerPagePreflight(exchange);
}

/** Answers that this node does not serve now. */
export function turnAway(exchange: HttpExchange): void {
  replyError(exchange, comeBack(), pageHeaders(exchange));
}

function ignoreError(): void {}

function comeBack(): ProtocolError {
  return new ProtocolError("node_draining", { retryAfterS: RETRY_AFTER_S });
}

/** The URL of a node for its peers: the configured one, else where its listener is bound (port 0 before it is). */
export function publicEndpoint(
  { publicUrl, host, publicFd, publicTls }: NodeOptions,
  listener: HttpListener | undefined,
): string {
  const { address = host, port = 0 } = listener ?? {};
  return publicUrl ?? listenerUrl(publicFd === undefined ? host : address, port, publicTls !== undefined);
}

/** The URL of a listener as a peer on this machine would write it. */
export function listenerUrl(host: string, port: number, isTls = false): string {
  const named = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${isTls ? "https" : "http"}://${named.includes(":") ? `[${named}]` : named}:${port}`;
}
