// An app's link in Node: `ws`, undici, node:crypto.
//
// Spec: L19, L30–L34.

import { createNodeRuntime, type Runtime } from "@moor/runtime";
import {
  createAppLinkOn,
  type AppLink,
  type AppLinkListeners,
  type AppLinkOptions,
  type AppLinkPorts,
} from "./app-link.ts";
import { verifyWithNode } from "./node-ed25519.ts";
import { createNodeOneShotHttp } from "./node-one-shot-http.ts";
import { createMemoryRecordStore } from "./record-store.ts";
import { createWsDialler, type NodeDialOptions } from "./ws-dialler.ts";

/**
 * An app's link on Node's sockets. Its record is in memory unless `ports` names a store.
 *
 * @param ports what to use instead, and how hosts are reached
 * @throws ConfigError for options that cannot be used
 */
export function createAppLink(
  options: AppLinkOptions,
  listeners: AppLinkListeners = {},
  { ca, lookup, ...ports }: Partial<AppLinkPorts> & NodeDialOptions = {},
): AppLink {
  const dial = { ...(ca !== undefined && { ca }), ...(lookup !== undefined && { lookup }) };
  return createAppLinkOn(
    { ...nodePorts(ports.runtime ?? createNodeRuntime(), dial), ...ports },
    options,
    listeners,
  );
}

function nodePorts(runtime: Runtime, dial: NodeDialOptions): AppLinkPorts {
  return {
    runtime,
    dialler: createWsDialler(dial),
    verify: verifyWithNode,
    http: createNodeOneShotHttp(runtime, dial),
    recordStore: createMemoryRecordStore(),
  };
}
