// `@moor/client/app`: an app's link in browsers and workers. Nothing reachable from here needs Node.
//
// Spec: L30–L34.

import { createWebRuntime, type Runtime } from "@moor/runtime/portable";
import {
  createAppLinkOn,
  type AppLink,
  type AppLinkListeners,
  type AppLinkOptions,
  type AppLinkPorts,
} from "./link/app-link.ts";
import { createStorageRecordStore } from "./link/storage-record-store.ts";
import { createWakeSourceOfPage } from "./link/wake-source.ts";
import { createWebDialler } from "./link/web-dialler.ts";
import { createWebVerifier } from "./link/web-ed25519.ts";
import { createWebOneShotHttp } from "./link/web-one-shot-http.ts";

/**
 * An app's link on the page's WebSocket, fetch, WebCrypto and localStorage.
 *
 * @param ports what to use instead
 * @throws ConfigError for options that cannot be used
 */
export function createAppLink(
  options: AppLinkOptions,
  listeners: AppLinkListeners = {},
  ports: Partial<AppLinkPorts> = {},
): AppLink {
  return createAppLinkOn({ ...webPorts(ports.runtime ?? createWebRuntime()), ...ports }, options, listeners);
}

function webPorts(runtime: Runtime): AppLinkPorts {
  return {
    runtime,
    dialler: createWebDialler(),
    verify: createWebVerifier(),
    http: createWebOneShotHttp(runtime),
    recordStore: createStorageRecordStore(),
    wakeSource: createWakeSourceOfPage(),
  };
}

export { Secret } from "@moor/runtime/portable";
export type { CommandEnding } from "./link/app-commands.ts";
export type {
  AppCommand,
  AppLink,
  AppLinkListeners,
  AppLinkOptions,
  AppLinkPorts,
  BoxPresence,
} from "./link/app-link.ts";
export type { ClientLinkState } from "./link/client-link-state.ts";
export type { LinkClientWarning } from "./link/link-driver.ts";
export type { NowEnding, OnceEnding, OneShotFailure } from "./link/one-shot.ts";
export { RawJson } from "./link/raw-json.ts";
export { createMemoryRecordStore, type LinkRecordStore } from "./link/record-store.ts";
export { createStorageRecordStore, LINK_RECORD_KEY } from "./link/storage-record-store.ts";
export { createWebVerifier } from "./link/web-ed25519.ts";
