// One home at the shard that owns it: its links, its box's presence, its commands, its snapshot.
//
// Spec: L20, L21, L23, L31, L33, L34; link-ports.ts.
// I1  At most one box link is live: the one in the seat (box-seat.ts).
// I2  A link is told once that it was taken for each time it is registered, and once that it was let go.
// I3  What an ended or older link says or how it ends changes nothing, but for commands that were delivered to it and of
//     which nobody has said yet whether they were written.
// I4  After `leave` nothing is held but what is in doubt; `arrive` makes it a home of this shard again.

import type { CommandId, HomeId } from "@moor/protocol";
import type {
  BoxAnswer,
  HomeStatus,
  LinkEnding,
  LinkId,
  LinkRefusal,
  NowOutcome,
  RegisteredLink,
} from "../../peer/link-ports.ts";
import type { EntryId, KnownPlacement } from "../../peer/peer-link.ts";
import {
  HOME_APP_LINKS_MAX,
  HOME_BUSY_WAIT_MS,
  LINK_AWAY_MS,
  PRESENCE_HOLD_MS_MAX,
  PRESENCE_SLACK_MS,
} from "../../server-limits.ts";
import { BoxPresence } from "./box-presence.ts";
import { BoxSeat } from "./box-seat.ts";
import { CommandTable } from "./command-table.ts";
import type { HomeContext } from "./home-context.ts";
import { describeHome } from "./home-status.ts";
import { HomeLinks, type HeldBox, type HeldLink } from "./home-links.ts";
import { NowSnapshot } from "./now-snapshot.ts";

/** Since when a shard has had a home, and until when its box is expected. The shard's monotonic milliseconds. */
export interface HomeArrival {
  readonly sinceMs: number;
  readonly boxExpectedUntilMs: number;
}

export class HomeState {
  readonly home: HomeId;
  readonly #context: HomeContext;
  readonly #links: HomeLinks;
  readonly #seat: BoxSeat;
  readonly commands: CommandTable;
  readonly #now: NowSnapshot;
  #presence: BoxPresence;
  #isOwned = true;

  constructor(home: HomeId, context: HomeContext, arrival: HomeArrival) {
    this.home = home;
    this.#context = context;
    this.#links = new HomeLinks(context);
    this.#seat = new BoxSeat(this.#links, context.generations);
    this.#now = new NowSnapshot(context.budget);
    this.commands = new CommandTable(home, context, {
      presence: () => this.#presence.box,
      link: () => this.#commandLink(),
    });
    this.#presence = this.#createPresence(arrival);
  }

  get isOwned(): boolean {
    return this.#isOwned;
  }

  /** Highest generation of any box link known here; 0 = none. */
  get lastGeneration(): number {
    return this.#seat.lastGeneration;
  }

  get hasBox(): boolean {
    return this.#links.box !== undefined;
  }

  get appCount(): number {
    return this.#links.appCount;
  }

  /** Whether nothing would be lost by forgetting this home. */
  isIdle(): boolean {
    const nowMs = this.#nowMs();
    if (!this.#isOwned) return this.commands.isIdle();
    return (
      this.#seat.isIdle(nowMs) &&
      this.#links.appCount === 0 &&
      this.#presence.box === "offline" &&
      this.commands.isIdle() &&
      this.#now.isIdle(nowMs)
    );
  }

  /**
   * Takes a link, or refuses it; whether it is one that was not here before.
   *
   * @param placementRevision the newest known of the home: new generations are above it (L23)
   */
  register(link: RegisteredLink, placementRevision: number): boolean {
    return link.role === "app" ? this.#registerApp(link) : this.#registerBox(link, placementRevision);
  }

  withdraw(linkId: LinkId, backWithinMs: number | undefined): void {
    if (this.#links.removeApp(linkId) || this.#links.box?.link.linkId !== linkId) return;
    this.#boxLeft(backWithinMs ?? 0);
  }

  answer(linkId: LinkId, id: CommandId, answer: BoxAnswer): void {
    if (this.#isLiveBox(linkId) || this.commands.isInDoubt(linkId, id)) this.commands.answer(id, answer);
  }

  event(linkId: LinkId, data: string): void {
    if (!this.#isLiveBox(linkId)) return;
    this.#links.tellApps((entry, linkIds) => entry.sendEvent(linkIds, data));
  }

  setNow(linkId: LinkId, data: string): void {
    if (this.#isLiveBox(linkId)) this.#now.set(data, this.#nowMs());
  }

  readNow(): NowOutcome {
    return this.#now.read(this.#nowMs());
  }

  describe(): HomeStatus {
    const nowMs = this.#nowMs();
    return describeHome(this.#links, nowMs, {
      presence: this.#presence.get(),
      duplicateIdentity: this.#seat.duplicate(nowMs),
      commandsOpen: this.commands.openCount,
    });
  }

  /** An entry is out of reach: its links are kept for LINK_AWAY_MS, for it to register them again. */
  entryAway(entry: EntryId): void {
    const nowMs = this.#nowMs();
    for (const held of this.#links.all()) if (held.link.entry === entry) held.awaySinceMs ??= nowMs;
    if (this.#links.box?.link.entry === entry) this.#presence.unknown(LINK_AWAY_MS);
  }

  /** Lets go of the links of an entry that were not registered again since they have been away for LINK_AWAY_MS. */
  dropAway(entry: EntryId): void {
    const sinceMs = this.#nowMs() - LINK_AWAY_MS;
    this.#dropLinks(({ link, awaySinceMs }) => link.entry === entry && (awaySinceMs ?? Infinity) <= sinceMs);
  }

  /** An entry is gone for good, with its links and all who waited there. */
  entryGone(entry: EntryId): void {
    this.#dropLinks(({ link }) => link.entry === entry);
    this.commands.dropEntry(entry);
  }

  /** The box has another key, or none: a link that was verified with the old one ends. */
  boxKeyChanged(key: string | undefined): void {
    const box = this.#links.box;
    if (box === undefined || box.link.credential === key) return;
    this.#links.letGo(box, { kind: "revoked" });
    this.#seat.identityReplaced();
    this.#boxLeft(0);
  }

  /** A token stopped working: the app links that came with it end. */
  tokenRevoked(keyId: string): void {
    for (const held of this.#links.apps()) {
      if (held.link.credential !== keyId) continue;
      this.#links.removeApp(held.link.linkId);
      this.#links.letGo(held, { kind: "revoked" });
    }
  }

  /** The home is deleted, or owned by another shard (`placement`) from now on. Returns how many links were given back. */
  leave(
    why: { readonly kind: "home-gone" } | { readonly kind: "moved"; readonly placement: KnownPlacement },
  ): number {
    const links = [...this.#links.all()];
    this.#isOwned = false;
    this.#links.clear();
    this.#now.clear();
    this.#presence.close();
    const ending: LinkEnding =
      why.kind === "moved" ? { kind: "not-owner", placement: why.placement } : { kind: "home-gone" };
    for (const held of links) this.#links.letGo(held, ending);
    this.commands.leave(ending.kind === "not-owner" ? ending : { kind: "not-delivered", why: "no-box" });
    return links.length;
  }

  /** The home is this shard's again. */
  arrive(arrival: HomeArrival): void {
    this.#isOwned = true;
    this.#presence = this.#createPresence(arrival);
    this.commands.arrive();
  }

  /** Forgets what is over. */
  sweep(): void {
    this.commands.sweep();
  }

  /** Ends every timer. */
  close(): void {
    this.#presence.close();
    this.commands.close();
  }

  #registerApp(link: RegisteredLink): boolean {
    const held = this.#links.app(link.linkId);
    if (held !== undefined) held.awaySinceMs = undefined;
    else if (this.#links.appCount >= HOME_APP_LINKS_MAX) {
      return this.#refuse(link, { kind: "busy", waitMs: HOME_BUSY_WAIT_MS });
    } else this.#links.addApp(link, this.#nowMs());
    this.#accept(link, undefined);
    return held === undefined;
  }

  #registerBox(link: RegisteredLink, placementRevision: number): boolean {
    const seating = this.#seat.take(link, placementRevision, this.#nowMs());
    if (seating.kind === "refused") return this.#refuse(link, seating.refusal);
    if (seating.kind === "taken") {
      if (seating.isFight) this.#reportFight();
      if (seating.replaced !== undefined) this.#replace(seating.replaced);
    }
    this.#boxThere(seating.box);
    return seating.kind === "taken" && link.generation === undefined;
  }

  #boxThere(box: HeldBox): void {
    this.#accept(box.link, box.generation);
    if (this.#links.box !== box) return; // It ended at its entry as it was accepted.
    this.#presence.online();
    this.commands.deliverQueued();
  }

  #replace(incumbent: HeldBox): void {
    const { metrics, logger } = this.#context;
    metrics.linkReplacements.inc();
    logger.debug("box-link-replaced", { home: this.home, generation: incumbent.generation });
    this.#links.letGo(incumbent, { kind: "replaced" });
    this.commands.linkEnded(incumbent.link.linkId);
  }

  #reportFight(): void {
    const { logger, timeline, port } = this.#context;
    timeline.note(this.home, "duplicate-identity", `${port.shard}: two boxes replace each other`);
    logger.warn("duplicate-identity", { home: this.home, shard: port.shard });
  }

  /** The box link is no more; its client may come back within `backWithinMs` (0 = nobody knows). */
  #boxLeft(backWithinMs: number): void {
    const box = this.#links.box;
    if (box === undefined) return;
    this.#links.box = undefined;
    const holdMs = Math.min(backWithinMs + PRESENCE_SLACK_MS, PRESENCE_HOLD_MS_MAX);
    if (backWithinMs > 0) this.#presence.unknown(holdMs);
    else this.#presence.offline();
    this.commands.linkEnded(box.link.linkId);
    if (backWithinMs <= 0) this.commands.failQueued();
  }

  #dropLinks(isDropped: (held: HeldLink) => boolean): void {
    for (const held of this.#links.apps()) if (isDropped(held)) this.#links.removeApp(held.link.linkId);
    if (this.#links.box !== undefined && isDropped(this.#links.box)) this.#boxLeft(0);
  }

  #accept(link: RegisteredLink, generation: number | undefined): void {
    this.#links.accept(link, { generation, presence: this.#presence.get() });
  }

  #refuse(link: RegisteredLink, refusal: LinkRefusal): false {
    this.#links.refuse(link, refusal);
    return false;
  }

  #isLiveBox(linkId: LinkId): boolean {
    return this.#links.box?.link.linkId === linkId;
  }

  #commandLink() {
    const box = this.#links.box;
    if (box === undefined || box.awaySinceMs !== undefined) return undefined;
    const entry = this.#context.entries(box.link.entry);
    return entry === undefined ? undefined : { linkId: box.link.linkId, entry };
  }

  #createPresence({ sinceMs, boxExpectedUntilMs }: HomeArrival): BoxPresence {
    return new BoxPresence(
      {
        runtime: this.#context.runtime,
        changed: () => {
          const told = this.#presence.get();
          this.#links.tellApps((entry, linkIds) => entry.sendPresence(linkIds, told, this.#context.port));
        },
        lapsed: () => this.commands.failQueued(),
      },
      { sinceMs, expectedUntilMs: boxExpectedUntilMs },
    );
  }

  #nowMs(): number {
    return this.#context.runtime.monotonicMs();
  }
}
