// The sequences of vectors/link-sequences.json, replayed by the real BoxLink and AppLink over real sockets on an injected clock.

import { readFile, writeFile } from "node:fs/promises";
import type { LookupFunction } from "node:net";
import path from "node:path";
import {
  createAppLink,
  createBoxLink,
  createFileRecordStore,
  createWsDialler,
  type ClientLinkState,
  type LinkRecordStore,
  type WakeKind,
} from "@moor/client";
import { Secret } from "@moor/runtime";
import {
  createMemoryCommandLog,
  createTempDir,
  Inbox,
  settle,
  startFakeLinkService,
  verifies,
  type FakeLinkService,
} from "@moor/testkit";
import { afterAll, onTestFinished, test } from "vitest";
import type { LinkSequence } from "../conformance/link-vector-files.ts";
import { readVectors } from "../conformance/vector-files.ts";
import { IDENTITY } from "./link-kit.ts";
import { replayLinkSequence, type ReplayedClient } from "./link-replay.ts";
import { ReplayRuntime } from "./replay-runtime.ts";

const { sequences } = readVectors("link-sequences");

/** Every name leads to this machine, as the sequences' own are nobody's here. */
const toThisMachine: LookupFunction = (_name, options, callback) => {
  if (options.all === true) callback(null, [{ address: "127.0.0.1", family: 4 }]);
  else callback(null, "127.0.0.1", 4);
};

/** A running link, as a box and an app have it alike. */
interface RunningLink {
  rehome(home: string | undefined): void;
  stop(): Promise<void>;
}

/** What a process of a client is started with. */
interface ProcessPorts {
  readonly service: FakeLinkService;
  readonly runtime: ReplayRuntime;
  readonly recordStore: LinkRecordStore;
  readonly caps: readonly string[];
  readonly wakes: { tell: (kind: WakeKind) => void };
  readonly onState: (state: ClientLinkState) => void;
}

type StartLink = (home: string, ports: ProcessPorts) => RunningLink;

const startBoxLink: StartLink = (home, { service, runtime, recordStore, caps, wakes, onState }) => {
  const box = createBoxLink(
    {
      endpoint: service.endpoint,
      home,
      identity: IDENTITY,
      serviceKeys: [service.key.publicKey],
      caps,
    },
    {
      runtime,
      recordStore,
      commandLog: createMemoryCommandLog(),
      dialler: createWsDialler(dialOptionsOf(service)),
      wakeSource: wakeSourceOf(wakes),
      onCommand: ({ data }) => data,
      onState,
    },
  );
  box.start();
  return {
    rehome: (to) => (to === undefined ? box.unlink() : box.relink(to, createMemoryCommandLog())),
    stop: () => box.stop(),
  };
};

const startAppLink: StartLink = (home, { service, runtime, recordStore, caps, wakes, onState }) => {
  const tokenOf = (of: string) => new Secret(`${of}.secret`);
  const app = createAppLink(
    {
      endpoint: service.endpoint,
      token: tokenOf(home),
      app: "phone-1",
      serviceKeys: [service.key.publicKey],
      caps,
    },
    { onState },
    { runtime, recordStore, wakeSource: wakeSourceOf(wakes), ...dialOptionsOf(service) },
  );
  app.start();
  return {
    rehome: (to) => app.setToken(to === undefined ? undefined : tokenOf(to)),
    stop: () => app.stop(),
  };
};

function dialOptionsOf({ certificates }: FakeLinkService) {
  return { ca: certificates?.ca ?? "", lookup: toThisMachine };
}

function wakeSourceOf(wakes: { tell: (kind: WakeKind) => void }) {
  return {
    watch: (onWake: (kind: WakeKind) => void) => {
      wakes.tell = onWake;
      return () => (wakes.tell = () => {});
    },
  };
}

/** A client whose record is a file in `dir`. */
function createReplayedClient(
  service: FakeLinkService,
  { follows }: LinkSequence,
  dir: string,
  startLink: StartLink,
): ReplayedClient {
  const file = path.join(dir, "link.json");
  const runtime = new ReplayRuntime();
  const states = new Inbox<ClientLinkState>("a state");
  const wakes = { tell: (_kind: WakeKind) => {} };
  const recordStore = createSwitchedStore(createFileRecordStore(file));
  let link: RunningLink | undefined;
  return {
    start: async (home, record) => {
      if (record !== undefined) await writeFile(file, record);
      const caps = follows ? ["shard"] : [];
      const onState = (state: ClientLinkState) => states.put(state);
      link = startLink(home, { service, runtime, recordStore, caps, wakes, onState });
    },
    kill: async () => {
      await link?.stop();
      link = undefined;
    },
    draw: async (random) => void (runtime.drawn = random),
    advance: async (byMs) => runtime.advance(byMs),
    advanceToState: async (byMsMost) => runtime.advanceUntil(byMsMost, () => states.size > 0),
    sleepThrough: async (byMs) => runtime.sleepThrough(byMs),
    wake: async (kind) => wakes.tell(kind),
    rehome: async (home) => link?.rehome(home),
    setWritable: async (isWritable) => void (recordStore.isWritable = isWritable),
    nowMs: async () => runtime.monotonicMs(),
    nextState: () => states.take(),
    takeStates: async () => {
      const taken: ClientLinkState[] = [];
      while (states.size > 0) taken.push(await states.take());
      return taken;
    },
    record: async () => {
      await recordStore.idle();
      return readFile(file, "utf8").catch(() => undefined);
    },
  };
}

/** A store that can be told to fail, and says when nothing is under way. */
function createSwitchedStore(store: LinkRecordStore) {
  let writing: Promise<unknown> = Promise.resolve();
  return {
    ...store,
    isWritable: true,
    save(text: string): Promise<void> {
      const save = this.isWritable ? store.save(text) : Promise.reject(new Error("full"));
      writing = save.catch(() => {});
      return save;
    },
    async idle(): Promise<void> {
      for (let seen: unknown; seen !== writing; await settle()) {
        seen = writing;
        await writing;
      }
    },
  };
}

const services = new Map<string, Promise<FakeLinkService>>();

afterAll(async () => {
  for (const service of services.values()) await (await service).close();
});

/** One service for each base of the sequences, with a certificate for every host they dial. */
function serviceOf(base: string): Promise<FakeLinkService> {
  let service = services.get(base);
  if (service === undefined) {
    const own = sequences.filter((sequence) => sequence.base === base);
    const names = new Set(own.flatMap(({ steps }) => steps.flatMap((step) => step.expect.dials)));
    service = startFakeLinkService({ base, names: [...names], isTlsHeld: true });
    services.set(base, service);
  }
  return service;
}

async function replay(sequence: LinkSequence, startLink: StartLink): Promise<void> {
  const service = await serviceOf(sequence.base);
  const folder = await createTempDir("replay");
  onTestFinished(() => folder.remove());
  await replayLinkSequence(
    service,
    createReplayedClient(service, sequence, folder.path, startLink),
    sequence,
  );
}

for (const sequence of sequences) {
  const title = `${sequence.id}: ${sequence.why}`;
  test(`BoxLink · ${title}`, () => replay(sequence, startBoxLink));
  test(`AppLink · ${title}`, () => replay(sequence, startAppLink));
}

verifies(
  ["L8", "L11", "L12", "L13", "L14", "L15", "L16", "L17", "L18", "L23", "L28"],
  "every sequence of the vectors is replayed by the real clients",
  () => {
    if (sequences.length < 25) throw new Error(`only ${sequences.length} sequences`);
  },
);
