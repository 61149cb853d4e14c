// What the tests of links share: a service in the test's hands, and boxes and apps on it whose time the test moves.

import {
  createAppLink,
  createBoxIdentityPem,
  createBoxLink,
  createMemoryRecordStore,
  createWsDialler,
  parseBoxIdentity,
  type AppLink,
  type AppLinkListeners,
  type AppLinkOptions,
  type AppLinkPorts,
  type BoxLink,
  type BoxLinkOptions,
  type BoxLinkPorts,
  type ClientLinkState,
} from "@moor/client";
import { Secret } from "@moor/runtime";
import {
  createMemoryCommandLog,
  Inbox,
  startFakeLinkService,
  VirtualRuntime,
  type FakeLinkService,
  type FakeLinkServiceOptions,
  type MemoryCommandLog,
} from "@moor/testkit";
import { onTestFinished } from "vitest";

export const HOME = "kitchen";
export const TOKEN = "kitchen.planted-secret-marker";
export const IDENTITY = parseBoxIdentity("--identity", createBoxIdentityPem());

/** A service, closed when the test ends. */
export async function startService(options: FakeLinkServiceOptions = {}): Promise<FakeLinkService> {
  const service = await startFakeLinkService(options);
  onTestFinished(() => service.close());
  return service;
}

/** Certificates to trust, as options of a dialler. */
export function trustOf({ certificates }: FakeLinkService): { readonly ca?: string } {
  return certificates === undefined ? {} : { ca: certificates.ca };
}

export interface StartedBox {
  readonly box: BoxLink;
  readonly runtime: VirtualRuntime;
  readonly log: MemoryCommandLog;
  /** States in order, each once. */
  readonly states: Inbox<ClientLinkState>;
  readonly warnings: readonly string[];
}

/** A box that dials `service`; stopped when the test ends. */
export function startBox(
  service: FakeLinkService,
  ports: Partial<BoxLinkPorts> = {},
  options: Partial<BoxLinkOptions> = {},
): StartedBox {
  const runtime = new VirtualRuntime();
  const log = createMemoryCommandLog();
  const states = new Inbox<ClientLinkState>("a state");
  const warnings: string[] = [];
  const box = createBoxLink(
    {
      endpoint: service.endpoint,
      home: HOME,
      identity: IDENTITY,
      serviceKeys: [service.key.publicKey],
      ...options,
    },
    {
      runtime,
      commandLog: log,
      recordStore: createMemoryRecordStore(),
      dialler: createWsDialler(trustOf(service)),
      onCommand: ({ data }) => data,
      onState: (state) => states.put(state),
      onWarning: (warning) => warnings.push(warning),
      ...ports,
    },
  );
  box.start();
  onTestFinished(() => stopped(box.stop(), runtime));
  return { box, runtime, log, states, warnings };
}

export interface StartedApp {
  readonly app: AppLink;
  readonly runtime: VirtualRuntime;
  readonly states: Inbox<ClientLinkState>;
  readonly warnings: readonly string[];
}

/** An app on `service`, not yet linking; stopped when the test ends. */
export function createApp(
  service: FakeLinkService,
  listeners: AppLinkListeners = {},
  { options = {}, ports = {} }: { options?: Partial<AppLinkOptions>; ports?: Partial<AppLinkPorts> } = {},
): StartedApp {
  const runtime = new VirtualRuntime();
  const states = new Inbox<ClientLinkState>("a state");
  const warnings: string[] = [];
  const app = createAppLink(
    {
      endpoint: service.endpoint,
      token: new Secret(TOKEN),
      app: "phone-1",
      serviceKeys: [service.key.publicKey],
      ...options,
    },
    { onState: (state) => states.put(state), onWarning: (code) => warnings.push(code), ...listeners },
    { runtime, ...trustOf(service), ...ports },
  );
  onTestFinished(() => stopped(app.stop(), runtime));
  return { app, runtime, states, warnings };
}

/** The next state of this kind; others before it are passed over. */
export async function stateOf<Kind extends ClientLinkState["kind"]>(
  states: Inbox<ClientLinkState>,
  kind: Kind,
): Promise<Extract<ClientLinkState, { readonly kind: Kind }>> {
  for (;;) {
    const state = await states.take();
    if (state.kind === kind) return state as Extract<ClientLinkState, { readonly kind: Kind }>;
  }
}

/** Lets a stop run into its own bounds, should a peer not answer its close. */
async function stopped(stop: Promise<void>, runtime: VirtualRuntime): Promise<void> {
  await runtime.advanceAsync(5_000);
  await stop;
}
