// Every link this entry holds: who is online, where each is registered, what shards and drains say to them.
//
// Spec: L20–L25, L31, L32; the ports of link-ports.ts. The parts are link-session.ts (one socket), link-handshake.ts,
// link-commands.ts, link-moves.ts (homes that go elsewhere) and box-frames.ts, app-frames.ts (what clients say).
// I1  A link is registered with one shard at a time, and withdrawn there when it ends or goes elsewhere.
// I2  A link outlives its owner's absence: it is registered again when a shard is back within reach (link-ports.ts I5).
// I3  What a former owner says late of a link changes nothing: only the shard where it is registered is heard.

import { CLOSE_CODE, encodeLinkFrame, type AppFrame, type BoxFrame, type HomeId } from "@moor/protocol";
import type { ShardId } from "../../directory/directory.ts";
import type { LinkDrainPort } from "../../drains/link-drain-port.ts";
import type { HomeShardPort, LinkEntry, LinkEntryPort, LinkId, Presence } from "../../peer/link-ports.ts";
import { handleAppFrame } from "./app-frames.ts";
import { handleBoxFrame, writeCommand } from "./box-frames.ts";
import { DueWheel, type DueItem } from "./due-wheel.ts";
import { HandshakingLinks } from "./handshaking-links.ts";
import { HomeIndex } from "./home-index.ts";
import { CommandTable } from "./link-commands.ts";
import type { LinkContext } from "./link-context.ts";
import { linkDrain } from "./link-drain.ts";
import { closeRefused, LinkHandshake, type HandshakeParts } from "./link-handshake.ts";
import {
  BUCKET_KEYS_MAX,
  HOME_HANDSHAKES,
  REGISTERING_MS,
  SIGNATURES_PER_ADDRESS_MAX,
  SIGNATURES_RUNNING_MAX,
  SIGNATURES_WAITING_MAX,
  WHEEL_SLOTS,
  WHEEL_TICK_MS,
} from "./link-limits.ts";
import type { HandshakeOutcome, LinkClose } from "./link-metrics.ts";
import { LinkMoves } from "./link-moves.ts";
import { LinkSession, type SessionOwner, type SessionParts, type VerifiedLink } from "./link-session.ts";
import { mintNobodysKey } from "./proof-verifier.ts";
import { RateBuckets } from "./rate-buckets.ts";
import { SignatureQueue } from "./signature-queue.ts";

/** A socket that was upgraded, as the listener hands it over. */
export type UpgradedLink = Omit<SessionParts, "linkId">;

export class LinkTable implements SessionOwner, LinkEntry {
  readonly context: LinkContext;
  readonly wheel: DueWheel<DueItem>;
  readonly commands: CommandTable;
  readonly handshaking: HandshakingLinks;
  readonly port: LinkEntryPort;
  readonly drain: LinkDrainPort;
  readonly #handshakeParts: HandshakeParts;
  readonly #sessions = new Map<LinkId, LinkSession>();
  readonly #byHome = new HomeIndex<LinkSession>();
  readonly #moves: LinkMoves;
  readonly #onlineCount = { box: 0, app: 0 };
  #linkCount = 0;
  #isRefusing = false;

  constructor(context: LinkContext) {
    const { runtime, entry, placements, shardPort } = context;
    this.context = context;
    this.wheel = new DueWheel(runtime, { tickMs: WHEEL_TICK_MS, slots: WHEEL_SLOTS });
    this.commands = new CommandTable({ entry, runtime, wheel: this.wheel, placements, shardPort });
    this.handshaking = new HandshakingLinks(context.metrics.handshaking);
    this.#handshakeParts = {
      context,
      signatures: new SignatureQueue({
        runningMax: SIGNATURES_RUNNING_MAX,
        waitingMax: SIGNATURES_WAITING_MAX,
        perAddressMax: SIGNATURES_PER_ADDRESS_MAX,
      }),
      homeAllowances: new RateBuckets(HOME_HANDSHAKES, BUCKET_KEYS_MAX),
      nobodysKey: mintNobodysKey(),
      register: (session, link) => this.register(session, link),
    };
    this.#moves = new LinkMoves(this);
    this.port = this.#createPort();
    this.drain = linkDrain({
      sessions: this.#sessions,
      refuseDials: () => {
        this.#isRefusing = true;
      },
      runtime,
    });
  }

  /** Whether new dials are refused before their upgrade. Spec L24. */
  get isRefusing(): boolean {
    return this.#isRefusing;
  }

  /** Signatures that wait to be checked, or are. */
  get signatureCount(): number {
    return this.#handshakeParts.signatures.size;
  }

  /** Takes an upgraded socket on. */
  open(upgraded: UpgradedLink): LinkSession {
    this.#linkCount += 1;
    const linkId = `${this.context.entry}-${this.#linkCount.toString(36)}` as LinkId;
    const session = new LinkSession(this, { linkId, ...upgraded });
    this.#sessions.set(linkId, session);
    this.handshaking.add(session);
    return session;
  }

  begin(session: LinkSession, hello: Parameters<SessionOwner["begin"]>[1]): LinkHandshake {
    return new LinkHandshake(this.#handshakeParts, session, hello);
  }

  handshakeEnded(session: LinkSession, outcome: HandshakeOutcome): void {
    this.handshaking.remove(session);
    this.context.metrics.handshakes.inc(outcome);
    if (outcome === "online") return;
    this.context.watch.handshakeFailed();
    if (!this.context.logger.isDebug) return;
    this.context.logger.debug("link-refused", { role: session.role, outcome });
  }

  cameOnline(session: LinkSession, link: VerifiedLink): void {
    const { logger, sightings, watch } = this.context;
    const { role, dialled, linkId } = session;
    const { home, app, isFollowing, generation } = link;
    this.#byHome.add(home, session);
    this.#countOnline(session, 1);
    if (app === undefined) sightings.noteBoxHello(home, link.credential, isFollowing);
    else sightings.noteAppHello(home, app, isFollowing);
    watch.linkVerified(app === undefined ? { home, role } : { home, role, app });
    logger.info("link-online", {
      link: linkId,
      home,
      role,
      host: dialled.host,
      shard: link.port?.shard,
      generation,
      isFollowing,
    });
  }

  frameArrived(session: LinkSession, link: VerifiedLink, frame: BoxFrame | AppFrame): void {
    if (session.role === "box") handleBoxFrame(session, link, frame as BoxFrame);
    else handleAppFrame(this.commands, session, link, frame as AppFrame);
  }

  left(session: LinkSession, link: VerifiedLink, end: LinkClose, backWithinMs: number | undefined): void {
    const { runtime, logger, metrics } = this.context;
    const { linkId, role } = session;
    const { home, app } = link;
    this.#byHome.remove(home, session);
    this.#countOnline(session, -1);
    for (const submission of link.commands?.values() ?? []) this.commands.withdraw(submission);
    (link.port ?? link.awayPort)?.withdrawLink(home, linkId, backWithinMs);
    link.port = undefined;
    link.awayPort = undefined;
    metrics.closes.inc(end);
    const livedMs = Math.round(runtime.monotonicMs() - link.onlineAtMs);
    logger.info("link-ended", { link: linkId, home, role, app, end, livedMs });
  }

  ended(session: LinkSession): void {
    this.#sessions.delete(session.linkId);
  }

  /** Registers a link with its home's owner, as it is known now; false while that is out of reach. */
  register(session: LinkSession, link: VerifiedLink): boolean {
    const { placements, shardPort, entry, identities } = this.context;
    const { linkId, role } = session;
    const { home, app, isFollowing, credential, generation } = link;
    const placement = placements.best(home);
    const port = placement === undefined ? undefined : shardPort(placement.shard);
    const known = link.port ?? link.awayPort;
    const isThere = known?.shard === placement?.shard;
    // Its client is not gone, it is on its way to another owner.
    if (!isThere) known?.withdrawLink(home, linkId, REGISTERING_MS);
    link.awayPort = port === undefined && isThere ? known : undefined;
    link.port = port;
    if (placement === undefined || port === undefined) return false;
    link.registeredBy = placement.revision;
    const who = { linkId, entry, home, role, app, isFollowing, credential, seenSeq: identities.seq };
    port.registerLink({ ...who, generation, placement });
    return true;
  }

  registerAgain(session: LinkSession, link: VerifiedLink): void {
    if (!this.register(session, link)) tellPresence(session, { box: "unknown", sinceMs: 0 });
  }

  /** The live links of a home. */
  linksOf(home: HomeId): readonly LinkSession[] {
    return this.#byHome.of(home);
  }

  shardsChanged(shards: ReadonlySet<ShardId>): void {
    const { placements } = this.context;
    for (const session of this.#sessions.values()) {
      const { handshake } = session;
      const link = session.link ?? handshake?.link;
      if (link === undefined) continue;
      const shard = link.port?.shard ?? placements.best(link.home)?.shard;
      if (shard !== undefined && !shards.has(shard)) continue;
      if (handshake === undefined) this.registerAgain(session, link);
      else handshake.nudge();
    }
    this.commands.shardsChanged(shards);
  }

  placementChanged(home: HomeId): void {
    // Before any link is closed: what becomes of a command is said to its app first.
    this.commands.placementChanged(home);
    this.#moves.placementChanged(home);
    const shard = this.context.placements.best(home)?.shard;
    for (const { handshake } of this.handshaking.all()) {
      if (handshake?.link.home === home && handshake.link.port?.shard !== shard) handshake.nudge();
    }
  }

  homeChanged(home: HomeId): void {
    const key = this.context.identities.boxKey(home);
    const isRevoked = (session: LinkSession, link: VerifiedLink) =>
      link.home === home && (key === undefined || (session.role === "box" && link.credential !== key));
    revoke(this.#byHome.of(home), isRevoked);
    revoke(this.handshaking.all(), isRevoked);
  }

  keyRevoked(keyId: string): void {
    revoke(this.#sessions.values(), ({ role }, { credential }) => role === "app" && credential === keyId);
  }

  /** Destroys every socket that is left. */
  destroyAll(): void {
    for (const session of this.#sessions.values()) session.destroy();
  }

  /** Ends timers. Sockets are the listener's to end. */
  close(): void {
    this.wheel.close();
    this.#moves.close();
  }

  #countOnline({ role }: LinkSession, change: 1 | -1): void {
    this.#onlineCount[role] += change;
    this.context.metrics.links.set(role, this.#onlineCount[role]);
  }

  #createPort(): LinkEntryPort {
    const sessionOf = (linkId: LinkId) => this.#sessions.get(linkId);
    // What a former owner says late of a link changes nothing (I3).
    const registeredAt = (linkId: LinkId, { shard }: HomeShardPort) => {
      const session = sessionOf(linkId);
      return (session?.link ?? session?.handshake?.link)?.port?.shard === shard ? session : undefined;
    };
    return {
      entry: this.context.entry,
      linkAccepted: (linkId, taken, shard) => this.#accepted(sessionOf(linkId), taken, shard),
      linkRefused: (linkId, refusal, shard) => {
        const session = registeredAt(linkId, shard);
        if (session?.link === undefined) return session?.handshake?.refused(refusal);
        if (refusal.kind === "not-owner") return this.#moves.notOwner(session, session.link, refusal);
        closeRefused(session, refusal);
      },
      deliverCommand: (command, shard) => writeCommand(sessionOf(command.linkId), command, shard),
      commandWritten: (submission) => this.commands.written(submission),
      commandEnded: (submission, ending) => this.commands.ended(submission, ending),
      sendEvent: (linkIds, data) => this.#sendAll(linkIds, encodeLinkFrame({ t: "event", data })),
      sendPresence: (linkIds, presence, shard) => {
        const here = linkIds.filter((linkId) => registeredAt(linkId, shard) !== undefined);
        this.#sendAll(here, presenceText(presence));
      },
      closeLink: (linkId, ending, shard) => {
        const session = registeredAt(linkId, shard);
        if (session?.link === undefined) return;
        if (ending.kind === "not-owner") return this.#moves.notOwner(session, session.link, ending);
        session.close(ending.kind === "replaced" ? CLOSE_CODE.replaced : CLOSE_CODE.auth, "");
      },
    };
  }

  #accepted(
    session: LinkSession | undefined,
    { generation, presence }: Parameters<LinkEntryPort["linkAccepted"]>[1],
    shard: HomeShardPort,
  ): void {
    const link = session?.link ?? session?.handshake?.link;
    // What another shard took is not wanted any more.
    if (session === undefined || link?.port?.shard !== shard.shard) return;
    if (session.handshake !== undefined) session.handshake.accepted(generation);
    link.generation = generation;
    link.hops = 0;
    tellPresence(session, presence);
  }

  #sendAll(linkIds: readonly LinkId[], text: string): void {
    for (const linkId of linkIds) {
      const session = this.#sessions.get(linkId);
      if (session?.role === "app" && session.link !== undefined) session.send(text);
    }
  }
}

/** Closes those whose credential does not count any more. A box in its handshake finds out by itself, as all do (L28). */
function revoke(
  sessions: Iterable<LinkSession>,
  isRevoked: (session: LinkSession, link: VerifiedLink) => boolean,
): void {
  for (const session of sessions) {
    const link = session.link ?? (session.role === "app" ? session.handshake?.link : undefined);
    if (link !== undefined && isRevoked(session, link)) session.close(CLOSE_CODE.auth, "");
  }
}

/** Tells an app that is online whether its box is. */
function tellPresence(session: LinkSession, presence: Presence): void {
  if (session.role === "app" && session.link !== undefined) session.send(presenceText(presence));
}

function presenceText({ box, sinceMs }: Presence): string {
  return encodeLinkFrame({ t: "presence", box, since_ms: Math.max(0, Math.round(sinceMs)) });
}
