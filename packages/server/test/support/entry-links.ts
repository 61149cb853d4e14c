// The link part of an entry on virtual time: fake sockets on one side, fake shards on the other, real keys between.

import { generateKeyPairSync, sign, verify, type KeyObject } from "node:crypto";
import {
  encodeLinkFrame,
  linkProofBytes,
  parseLinkFrame,
  type HelloOkFrame,
  type HomeId,
  type LinkFrame,
} from "@moor/protocol";
import { createSilentLogger, type Logger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import type { ShardId, ShardRecord } from "../../src/directory/directory.ts";
import { NO_LINK_WATCH } from "../../src/drains/link-drain-port.ts";
import { createHelloSigner } from "../../src/entry/link/hello-signer.ts";
import type { KnownToken } from "../../src/entry/link/link-context.ts";
import { LinkHosts, type DialledHost } from "../../src/entry/link/link-hosts.ts";
import type { HandshakeOutcome, LinkClose, LinkRole } from "../../src/entry/link/link-metrics.ts";
import type { LinkSession, LinkSocket } from "../../src/entry/link/link-session.ts";
import { LinkTable } from "../../src/entry/link/link-table.ts";
import type { EntryId, KnownPlacement } from "../../src/peer/peer-link.ts";
import { FakeHomeShard } from "./fake-home-shard.ts";

export const ENTRY = "e1".repeat(8) as EntryId;
export const BASE = "moor.localhost";

/** An Ed25519 pair with its raw public key, base64url. */
export interface KeyPair {
  readonly raw: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function makeKeyPair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { raw: String(publicKey.export({ format: "jwk" }).x), publicKey, privateKey };
}

/** A socket whose other end is the test. */
export class FakeLinkSocket implements LinkSocket {
  readonly texts: string[] = [];
  closedWith: { readonly code: number; readonly reason: string } | undefined;
  isDestroyed = false;
  waitingBytes = 0;
  /** Its peer has sent a close frame of its own. */
  isEnding = false;

  sendText(text: string): boolean {
    if (!this.isEnding) this.texts.push(text);
    return !this.isEnding;
  }

  closeWith(code: number, reason: string): void {
    this.closedWith = { code, reason };
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

/** A client at the other end of a fake socket. */
export class LinkClient {
  readonly socket: FakeLinkSocket;
  readonly session: LinkSession;

  constructor(socket: FakeLinkSocket, session: LinkSession) {
    this.socket = socket;
    this.session = session;
  }

  /** Frames received so far. */
  get frames(): LinkFrame[] {
    return this.socket.texts.map((text) => {
      const parsed = parseLinkFrame(text, "service");
      if (parsed.kind !== "frame") throw new Error(`the service sent no frame: ${text}`);
      return parsed.frame;
    });
  }

  /** Kinds of the frames received so far. */
  get kinds(): string[] {
    return this.frames.map(({ t }) => t);
  }

  /** The frames of one kind. */
  of<Kind extends LinkFrame["t"]>(t: Kind): Extract<LinkFrame, { readonly t: Kind }>[] {
    return this.frames.filter((frame): frame is Extract<LinkFrame, { readonly t: Kind }> => frame.t === t);
  }

  get helloOk(): HelloOkFrame | undefined {
    return this.of("hello_ok")[0];
  }

  get isOnline(): boolean {
    return this.session.link !== undefined;
  }

  /** Close code and reason, as one text; `open` while there is none. */
  get end(): string {
    const { closedWith } = this.socket;
    if (closedWith === undefined) return this.socket.isDestroyed ? "destroyed" : "open";
    return `${closedWith.code} ${closedWith.reason}`.trim();
  }

  sayText(text: string | Uint8Array, isBinary = false): void {
    this.session.receive(typeof text === "string" ? Buffer.from(text) : text, isBinary);
  }

  say(frame: LinkFrame): void {
    this.sayText(encodeLinkFrame(frame));
  }

  /** The socket ends. */
  leave(): void {
    this.session.socketClosed();
  }
}

export const NONCE = "n".repeat(42) + "A";

/** A hello as JSON text. */
export function helloText(fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ t: "hello", v: 1, home: "h1", caps: ["shard"], nonce: NONCE, ...fields });
}

export class EntryLinks {
  readonly runtime = new VirtualRuntime(7);
  readonly service = makeKeyPair();
  nextKey: string | undefined;
  readonly boxes = new Map<string, KeyPair>();
  /** Homes that exist, with or without a box. */
  readonly homes = new Set<string>();
  readonly tokens = new Map<string, KnownToken & { readonly kind: string }>();
  readonly placements = new Map<string, KnownPlacement>();
  /** Where an unknown home counts as placed. */
  unknownAt = "s1";
  readonly shardStates = new Map<string, ShardRecord["state"]>();
  readonly shards = new Map<string, FakeHomeShard>();
  readonly away = new Set<string>();
  readonly sightings: string[] = [];
  readonly outcomes: HandshakeOutcome[] = [];
  readonly closes: LinkClose[] = [];
  readonly online = { box: 0, app: 0 };
  readonly hosts: LinkHosts;
  readonly table: LinkTable;
  /** Signature checks are held here while `isHolding`. */
  readonly heldChecks: (() => void)[] = [];
  isHolding = false;
  verifyCount = 0;
  catchUps = 0;
  onCatchUp: () => void = () => {};
  spreadMs = 5_000;

  constructor(options: { readonly shards?: readonly string[]; readonly logger?: Logger } = {}) {
    const { shards = ["s1", "s2"], logger = createSilentLogger() } = options;
    for (const id of shards) {
      this.shardStates.set(id, "live");
      this.shards.set(id, new FakeHomeShard(id as ShardId, () => this.table.port));
    }
    this.hosts = new LinkHosts({
      base: BASE,
      shards: () => [...this.shardStates.keys()].map((id) => this.record(id)),
      defaultShard: () => "s1" as ShardId,
    });
    this.table = new LinkTable({
      entry: ENTRY,
      runtime: this.runtime,
      logger,
      metrics: {
        links: { set: (role: LinkRole, count) => void (this.online[role] = count) },
        handshakes: { inc: (outcome) => void this.outcomes.push(outcome) },
        closes: { inc: (close) => void this.closes.push(close) },
        handshaking: { set: () => {} },
        oneShots: { inc: () => {} },
      },
      hosts: this.hosts,
      identities: {
        seq: 7,
        boxKey: (home) =>
          this.boxes.get(home)?.raw ?? (this.homes.has(home) || this.placements.has(home) ? null : undefined),
        token: (text, kind) => {
          const token = this.tokens.get(text);
          return token?.kind === kind ? token : undefined;
        },
      },
      placements: {
        best: (home) => this.placements.get(home) ?? { shard: this.unknownAt as ShardId, revision: 0 },
        learn: (home, placement) => {
          if ((this.placements.get(home)?.revision ?? 0) >= placement.revision) return false;
          this.placements.set(home, placement);
          return true;
        },
        shard: (id) => (this.shardStates.has(id) ? this.record(id) : undefined),
      },
      sightings: {
        noteBoxHello: (home, _key, hasShard) => void this.sightings.push(`${home}/box ${hasShard}`),
        noteAppHello: (home, app, hasShard) => void this.sightings.push(`${home}/${app} ${hasShard}`),
      },
      signer: createHelloSigner(() => ({
        active: { id: "k".repeat(16), privateKey: this.service.privateKey },
        next: this.nextKey,
      })),
      verify: (bytes, signature, key, answer) => {
        this.verifyCount += 1;
        const run = () => answer(verify(null, bytes, key, Buffer.from(signature, "base64url")));
        if (this.isHolding) this.heldChecks.push(run);
        else run();
      },
      shardPort: (shard) => (this.away.has(shard) ? undefined : this.shards.get(shard)),
      catchUp: async () => {
        this.catchUps += 1;
        this.onCatchUp();
      },
      watch: NO_LINK_WATCH,
      spreadMs: () => this.spreadMs,
      pingMs: 25_000,
    });
  }

  shard(id: string): FakeHomeShard {
    const shard = this.shards.get(id);
    if (shard === undefined) throw new Error(`no shard ${id}`);
    return shard;
  }

  record(id: string): ShardRecord {
    return {
      id: id as ShardId,
      node: "n1",
      publicHost: `${id}.${BASE}`,
      state: this.shardStates.get(id) ?? "down",
      leaseCounter: 0,
    };
  }

  setState(id: string, state: ShardRecord["state"]): void {
    this.shardStates.set(id, state);
    this.hosts.changed();
  }

  /** A home on a shard, with the key of an enrolled box. */
  addHome(home: string, shard = "s1", revision = 1): KeyPair {
    const pair = makeKeyPair();
    this.boxes.set(home, pair);
    this.placements.set(home, { shard: shard as ShardId, revision });
    return pair;
  }

  /** An app's token for a home. */
  addToken(home: string, kind = "app"): string {
    const text = `${home}.moor_${kind}_${"x".repeat(43)}_${this.tokens.size}`;
    this.tokens.set(text, { home: home as HomeId, keyId: `key_${this.tokens.size}`, kind });
    return text;
  }

  move(home: string, shard: string, revision: number): void {
    this.placements.set(home, { shard: shard as ShardId, revision });
    this.table.placementChanged(home as HomeId);
  }

  dialled(header: string): DialledHost {
    const dialled = this.hosts.find(header, true);
    if (dialled === undefined) throw new Error(`${header} leads nowhere`);
    return dialled;
  }

  /** A socket that was just upgraded. */
  open(role: LinkRole, host: string = BASE, address = "192.0.2.1"): LinkClient {
    const socket = new FakeLinkSocket();
    return new LinkClient(socket, this.table.open({ role, dialled: this.dialled(host), address, socket }));
  }

  /** A box that has said hello. */
  hail(
    home: string,
    options: { readonly host?: string; readonly caps?: readonly string[] } = {},
  ): LinkClient {
    const client = this.open("box", options.host);
    client.sayText(helloText({ home, caps: options.caps ?? ["shard"] }));
    return client;
  }

  /** Answers a challenge with a box's key; gives the text that was sent. */
  prove(client: LinkClient, home: string, pair = this.boxes.get(home), host?: string): string {
    const [challenge] = client.of("challenge");
    if (challenge === undefined || pair === undefined) throw new Error("nothing to prove");
    const bytes = linkProofBytes({
      host: host ?? client.session.dialled.host,
      home,
      clientNonce: NONCE,
      serviceNonce: challenge.nonce,
    });
    const sig = sign(null, bytes, pair.privateKey).toString("base64url");
    const text = JSON.stringify({ t: "proof", sig });
    client.sayText(text);
    return text;
  }

  /** A box as far as it gets. */
  box(home: string, options: { readonly host?: string; readonly caps?: readonly string[] } = {}): LinkClient {
    const client = this.hail(home, options);
    if (client.of("challenge").length > 0) this.prove(client, home);
    return client;
  }

  /** An app as far as it gets. */
  app(
    token: string,
    options: { readonly host?: string; readonly caps?: readonly string[]; readonly app?: string } = {},
  ): LinkClient {
    const client = this.open("app", options.host);
    const home = token.split(".")[0] ?? "";
    const { caps = ["shard"], app = "phone" } = options;
    client.sayText(helloText({ home, token, app, caps }));
    return client;
  }
}
