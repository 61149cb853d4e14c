// The page of the browser tests: an AppLink of `@moor/client/app` on this browser's sockets, whose time and random numbers
// the test moves.

import {
  createAppLink,
  createStorageRecordStore,
  LINK_RECORD_KEY,
  Secret,
  type AppLink,
  type ClientLinkState,
  type CommandEnding,
  type LinkRecordStore,
  type NowEnding,
  type OnceEnding,
} from "@moor/client/app";
import { ReplayRuntime } from "../integration/replay-runtime.ts";

/** What a link in the page is started with. */
export interface PageStart {
  readonly endpoint: string;
  readonly token: string;
  readonly serviceKey: string;
  readonly caps: readonly string[];
  /** Replaces what the record holds. */
  readonly record?: string | undefined;
  /** Real time instead of the test's. */
  readonly isRealTime?: boolean;
}

/** What the tests do with the page. */
export interface PageClient {
  start(start: PageStart): void;
  kill(): Promise<void>;
  draw(random: number): void;
  advance(byMs: number): void;
  advanceToState(byMsMost: number): void;
  sleepThrough(byMs: number): void;
  /** As the platform tells of it. */
  wake(kind: "woke" | "network-changed"): void;
  setToken(token: string | undefined): void;
  setWritable(isWritable: boolean): void;
  nowMs(): number;
  nextState(): Promise<ClientLinkState>;
  takeStates(): readonly ClientLinkState[];
  record(): Promise<string | null>;
  send(id: string, data: unknown): Promise<CommandEnding["kind"]>;
  once(id: string, data: unknown): Promise<OnceEnding>;
  now(token: string): Promise<NowEnding>;
}

/** The part of the DOM that is used. */
interface Dom {
  readonly localStorage: { getItem(key: string): string | null; setItem(key: string, value: string): void };
  readonly document: { dispatchEvent(event: object): void };
  readonly window: { dispatchEvent(event: object): void };
  client: PageClient;
}

const dom = globalThis as unknown as Dom;
const runtime = new ReplayRuntime();
const states: ClientLinkState[] = [];
let onState: (() => void) | undefined;
let link: AppLink | undefined;
let isWritable = true;
let writing: Promise<unknown> = Promise.resolve();

function recordStore(): LinkRecordStore {
  const store = createStorageRecordStore();
  return {
    ...store,
    save: (text) => {
      const save = isWritable ? store.save(text) : Promise.reject(new Error("full"));
      writing = save.catch(() => {});
      return save;
    },
  };
}

function onShown(state: ClientLinkState): void {
  states.push(state);
  onState?.();
}

dom.client = {
  start: ({ endpoint, token, serviceKey, caps, record, isRealTime }) => {
    if (record !== undefined) dom.localStorage.setItem(LINK_RECORD_KEY, record);
    link = createAppLink(
      { endpoint, token: new Secret(token), app: "page-1", serviceKeys: [serviceKey], caps },
      { onState: onShown },
      isRealTime === true ? {} : { runtime, recordStore: recordStore() },
    );
    link.start();
  },
  kill: async () => {
    const stopping = link?.stop();
    link = undefined;
    await stopping;
  },
  draw: (random) => {
    runtime.drawn = random;
  },
  advance: (byMs) => runtime.advance(byMs),
  advanceToState: (byMsMost) => runtime.advanceUntil(byMsMost, () => states.length > 0),
  sleepThrough: (byMs) => runtime.sleepThrough(byMs),
  wake: (kind) => {
    if (kind === "woke") dom.document.dispatchEvent(new Event("resume"));
    else dom.window.dispatchEvent(new Event("online"));
  },
  setToken: (token) => link?.setToken(token === undefined ? undefined : new Secret(token)),
  setWritable: (can) => {
    isWritable = can;
  },
  nowMs: () => runtime.monotonicMs(),
  nextState: () =>
    new Promise((resolve) => {
      const take = () => {
        const state = states.shift();
        if (state === undefined) return;
        onState = undefined;
        resolve(state);
      };
      onState = take;
      take();
    }),
  takeStates: () => states.splice(0),
  record: async () => {
    for (let seen: unknown; seen !== writing; await new Promise((resolve) => setTimeout(resolve, 0))) {
      seen = writing;
      await writing;
    }
    return dom.localStorage.getItem(LINK_RECORD_KEY);
  },
  send: async (id, data) => (await (link as AppLink).send({ id, ttlMs: 9_000, data })).kind,
  once: (id, data) => (link as AppLink).once({ id, ttlMs: 9_000, data }),
  now: (token) => (link as AppLink).now(new Secret(token)),
};
