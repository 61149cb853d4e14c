// A box of a crowd by the client library: BoxLink as `moor box` runs it, heard of through the sockets it dials.
//
// Spec: L9–L18, L20.
// I1  An act is in the ledger before its result leaves: what a ledger does not show was not acted on.
// I2  Without a folder nothing is kept on disk; with one, record and command log outlive the process.

import { appendFileSync, mkdirSync } from "node:fs";
import path from "node:path";
import {
  createBoxLink,
  createFileRecordStore,
  createMemoryRecordStore,
  createWsDialler,
  openFileCommandLog,
  parseBoxIdentity,
  type BoxCommand,
  type BoxLink,
  type CommandLog,
  type LinkDialler,
  type LinkSocket,
  type SocketEnd,
} from "@moor/client";
import { createNodeRuntime, Secret, sleep } from "@moor/runtime";
import type { CrowdClient, CrowdOrder, MemberFactory, NotedEnd, NoteLinkEvent } from "./link-crowd.ts";
import { boxKeyOf } from "./link-plain.ts";
import { createMemoryCommandLog } from "./memory-command-log.ts";

const runtime = createNodeRuntime();

/** A box by the client library. */
export const makeLibraryMember: MemberFactory = (client, order, note) => {
  let link: BoxLink | undefined;
  let log: CommandLog | undefined;
  return {
    start: async () => {
      log = await openLog(client, order);
      link = createLink(client, order, log, note);
      link.start();
    },
    stop: async () => {
      await link?.stop();
      await log?.close();
    },
  };
};

async function openLog({ home }: CrowdClient, { stateDir }: CrowdOrder): Promise<CommandLog> {
  if (stateDir === undefined) return createMemoryCommandLog();
  mkdirSync(folderOf(stateDir, home), { recursive: true, mode: 0o700 });
  return openFileCommandLog({ path: path.join(folderOf(stateDir, home), "commands"), home, runtime });
}

function folderOf(stateDir: string, home: string): string {
  return path.join(stateDir, home);
}

function createLink(client: CrowdClient, order: CrowdOrder, log: CommandLog, note: NoteLinkEvent): BoxLink {
  const { endpoint, serviceKeys, caps, stateDir, ca } = order;
  const { home, seed } = client;
  const pem = boxKeyOf(seed).export({ type: "pkcs8", format: "pem" }).toString();
  const dialler = new JournalDialler(createWsDialler(ca === undefined ? {} : { ca }), note);
  const recordStore =
    stateDir === undefined
      ? createMemoryRecordStore()
      : createFileRecordStore(path.join(folderOf(stateDir, home), "record.json"));
  return createBoxLink(
    {
      endpoint,
      home,
      serviceKeys,
      identity: parseBoxIdentity("identity", new Secret(pem)),
      ...(caps === undefined ? {} : { caps }),
    },
    {
      runtime,
      recordStore,
      commandLog: log,
      dialler,
      onCommand: actor(client, order),
      onState: ({ kind }) => {
        if (kind === "online") dialler.noteOnline();
      },
    },
  );
}

/** Acts after half its time and answers after the other half. */
function actor({ home }: CrowdClient, { ledgerFile, actMs = 0 }: CrowdOrder) {
  let turn = 0;
  return async ({ id }: BoxCommand) => {
    await sleep(runtime, (runtime.random() * actMs) / 2);
    turn += 1;
    const result = { did: id, turn };
    if (ledgerFile !== undefined) {
      appendFileSync(ledgerFile, `${JSON.stringify({ id, home, atMs: runtime.wallMs() })}\n`);
    }
    await sleep(runtime, (runtime.random() * actMs) / 2);
    return result;
  };
}

/** Real sockets, with a note of each dial and each end. */
class JournalDialler implements LinkDialler {
  readonly #inner: LinkDialler;
  readonly #note: NoteLinkEvent;
  #isOnline = false;

  constructor(inner: LinkDialler, note: NoteLinkEvent) {
    this.#inner = inner;
    this.#note = note;
  }

  /** The socket dialled last has had its hello_ok verified. */
  noteOnline(): void {
    this.#isOnline = true;
    this.#note("online");
  }

  dial(...[url, sink]: Parameters<LinkDialler["dial"]>): LinkSocket {
    this.#note("dial");
    let hasEnded = false;
    const noteEnd = (end: NotedEnd) => {
      if (hasEnded) return;
      hasEnded = true;
      this.#note(this.#isOnline ? "lost" : "failed", end);
      this.#isOnline = false;
    };
    const socket = this.#inner.dial(url, {
      onOpen: () => sink.onOpen(),
      onMessage: (text) => sink.onMessage(text),
      onEnd: (end) => {
        noteEnd(notedEnd(end));
        sink.onEnd(end);
      },
    });
    return {
      get bufferedBytes() {
        return socket.bufferedBytes;
      },
      send: (text) => socket.send(text),
      close: (code) => socket.close(code),
      destroy: () => {
        noteEnd({ code: 0, fault: "given up by the client" });
        socket.destroy();
      },
    };
  }
}

function notedEnd(end: SocketEnd): NotedEnd {
  switch (end.kind) {
    case "closed":
      return { code: end.code };
    case "no-upgrade":
      return { code: end.status };
    case "fault":
      return { code: 0, fault: end.trouble };
  }
}
