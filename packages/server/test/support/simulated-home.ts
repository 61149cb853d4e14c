// A home of the simulation: its box, which keeps a durable log over its restarts, and its apps; real client code.

import type { HomeId } from "@moor/protocol";
import { Secret, sleep } from "@moor/runtime";
import { createAppLinkOn, type AppLink, type BoxPresence } from "../../../client/src/link/app-link.ts";
import { createBoxLink, type BoxLink } from "../../../client/src/link/box-link.ts";
import type { CommandLog, LoggedCommand } from "../../../client/src/link/command-log.ts";
import { createMemoryRecordStore } from "../../../client/src/link/record-store.ts";
import { makeKeyPair } from "./entry-links.ts";
import { LINK_BASE, type SimulatedLinks } from "./simulated-links.ts";

const ENDPOINT = `wss://${LINK_BASE}`;
/** Longest time a box takes to act. Milliseconds. */
const ACT_MS_MAX = 3_000;

/** What happened to a command, over all its submissions. */
export interface LedgerEntry {
  readonly home: HomeId;
  submissions: number;
  /** Times it was written to a box's socket. */
  written: number;
  /** Times a box acted on it. */
  acted: number;
  /** How submissions ended. */
  readonly endings: string[];
}

/** A box whose disk outlives its processes. */
export class SimulatedBox {
  readonly home: HomeId;
  readonly #links: SimulatedLinks;
  readonly #ledger: ReadonlyMap<string, LedgerEntry>;
  readonly #log = new Map<string, LoggedCommand>();
  readonly #store = createMemoryRecordStore();
  readonly #caps: readonly string[];
  #starts = 0;
  #process: { readonly name: string; readonly link: BoxLink; isDead: boolean } | undefined;

  constructor(
    links: SimulatedLinks,
    home: HomeId,
    ledger: ReadonlyMap<string, LedgerEntry>,
    caps: readonly string[],
  ) {
    this.#links = links;
    this.home = home;
    this.#ledger = ledger;
    this.#caps = caps;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  start(): void {
    const { runtime } = this.#links.cluster;
    this.#starts += 1;
    const process = { name: `${this.home}/box/${this.#starts}`, isDead: false };
    const link = createBoxLink(
      {
        endpoint: ENDPOINT,
        home: this.home,
        // The entries of the simulation take any proof.
        identity: { publicKey: "", sign: () => new Uint8Array(64) },
        serviceKeys: [this.#links.serviceKey.raw],
        caps: this.#caps,
      },
      {
        runtime,
        recordStore: this.#store,
        commandLog: this.#logOf(process),
        onCommand: ({ id }) => this.#act(process, id),
        dialler: this.#links.dialler(process.name),
        verify: () => true,
      },
    );
    this.#process = Object.assign(process, { link });
    link.setNow({ starts: this.#starts });
    link.start();
  }

  /** Power off: nothing of the process goes on. The disk stays; the entry hears of it unless `isUnseen`. */
  kill(isUnseen: boolean): void {
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    process.isDead = true;
    for (const socket of this.#links.sockets) {
      if (socket.owner !== process.name) continue;
      socket.isDark = isUnseen;
      socket.clientVanished();
    }
    void process.link.stop();
  }

  tellEvent(data: unknown): void {
    this.#process?.link.sendEvent(data);
  }

  async #act(process: { readonly isDead: boolean }, id: string): Promise<unknown> {
    const entry = this.#ledger.get(id);
    if (entry !== undefined && !process.isDead) entry.acted += 1;
    const { runtime } = this.#links.cluster;
    await sleep(runtime, runtime.random() * ACT_MS_MAX);
    return { id };
  }

  /** The disk as one process sees it: a dead one never hears of it again. */
  #logOf(process: { readonly isDead: boolean }): CommandLog {
    const unlessDead = <Outcome>(act: () => Outcome): Promise<Outcome> =>
      process.isDead ? new Promise(() => {}) : Promise.resolve(act());
    return {
      look: (id) => unlessDead(() => this.#log.get(id) ?? { kind: "new" }),
      begin: (id) =>
        unlessDead(() => {
          this.#log.set(id, { kind: "begun" });
          return "begun";
        }),
      end: (id, resultJson) =>
        unlessDead(() => {
          this.#log.set(id, { kind: "ended", resultJson });
          return "ended";
        }),
      close: () => Promise.resolve(),
    };
  }
}

/** An app, and what it saw. */
export class SimulatedApp {
  readonly home: HomeId;
  readonly link: AppLink;
  presence: BoxPresence["box"] | undefined;
  isOnline = false;

  constructor(links: SimulatedLinks, home: HomeId, name: string, caps: readonly string[], token: string) {
    this.home = home;
    this.link = createAppLinkOn(
      {
        runtime: links.cluster.runtime,
        dialler: links.dialler(`${home}/app/${name}`),
        verify: () => true,
        http: {
          request: () => Promise.resolve({ kind: "fault", trouble: "refused", wasWritten: false }),
          close: () => Promise.resolve(),
        },
        recordStore: createMemoryRecordStore(),
      },
      {
        endpoint: ENDPOINT,
        token: new Secret(token),
        app: name,
        serviceKeys: [links.serviceKey.raw],
        caps,
      },
      {
        onPresence: ({ box }) => {
          this.presence = box;
        },
        onState: ({ kind }) => {
          this.isOnline = kind === "online";
        },
      },
    );
    this.link.start();
  }
}

/** A box key that no box of the simulation needs to know. */
export function anyBoxKey(): string {
  return makeKeyPair().raw;
}
