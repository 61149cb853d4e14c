// The homes of one shard, as entries talk to them.
//
// Spec: L20, L21, L23, L31, L33, L34; design "Shape". A shard never forwards: what it does not own it answers with
// not-owner and what it knows.
// I1  A home's state exists only while this shard is the owner by the newest placement known here, and for as long
//     afterwards as something that it delivered is in doubt.
// I2  A sender that goes by a newer placement than we know is believed: it names its revision (R22).
// I3  A message about a link or a command of a home without a state is about something already gone.

import type { CommandId, HomeId } from "@moor/protocol";
import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import type { ShardId } from "../../directory/directory.ts";
import type { LinkWatch } from "../../drains/link-drain-port.ts";
import type { ByteBudget } from "../../entry/byte-budget.ts";
import type { PlacementKnowledge } from "../../entry/placement-knowledge.ts";
import type { Timeline } from "../../moves/timeline.ts";
import type { Metrics } from "../../operator/metrics.ts";
import type {
  BoxAnswer,
  HomeShardPort,
  HomeStatus,
  LinkId,
  NowOutcome,
  RegisteredLink,
  SubmissionId,
  SubmittedCommand,
} from "../../peer/link-ports.ts";
import type { EntryId, KnownPlacement, NotOwner } from "../../peer/peer-link.ts";
import { HOME_SWEEP_INTERVAL_MS, LINK_AWAY_MS, PRESENCE_HOLD_MS } from "../../server-limits.ts";
import { TenantArrivals } from "../tenant-arrivals.ts";
import { Generations } from "./generations.ts";
import type { HomeContext, LinkEntryLookup } from "./home-context.ts";
import { HomeState, type HomeArrival } from "./home-state.ts";

export interface HomeTableOptions {
  readonly id: ShardId;
  readonly placements: PlacementKnowledge;
  readonly entries: LinkEntryLookup;
  /** Whether this node knows that a token was revoked: the entry of an app may not have heard of it yet. */
  readonly isKeyRevoked: (keyId: string) => boolean;
  /** The same of a box's key, where this node knows as much as the entry, or more. */
  readonly isBoxKeyReplaced: (home: HomeId, key: string, seenSeq: number) => boolean;
  /** Directory time at which this process registered, in microseconds: generations are above it. Spec L23. */
  readonly startRevision: () => number;
  /** How long boxes are waited for after the start of this process: longer than PRESENCE_HOLD_MS after a drain. Milliseconds. */
  readonly startHoldMs: number;
  /** Bytes of commands, results and snapshots, shared by all shards of the node. */
  readonly budget: ByteBudget;
  /** This node's own entry, and who is told of links that other entries hold. */
  readonly self: EntryId;
  readonly linkWatch: Pick<LinkWatch, "linkedElsewhere">;
  readonly metrics: Pick<Metrics, "commandsEnded" | "linkReplacements">;
  readonly timeline: Timeline;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** What a shard's homes hold right now, for metrics. */
export interface HomeGauges {
  readonly boxLinks: number;
  readonly appLinks: number;
  readonly commandsOpen: number;
}

export class HomeTable implements HomeShardPort {
  readonly shard: ShardId;
  readonly #options: HomeTableOptions;
  readonly #context: HomeContext;
  readonly #homes = new Map<HomeId, HomeState>();
  readonly #arrivals: TenantArrivals<HomeId>;
  /** When a home was last forgotten: of one without a state nothing older is known. */
  #forgottenAtMs = Number.NEGATIVE_INFINITY;
  #sweepTimer: TimerHandle | undefined;
  readonly #awayTimers = new Set<TimerHandle>();
  #isClosed = false;

  constructor(options: HomeTableOptions) {
    const { entries, startRevision, budget, metrics, timeline, runtime, logger } = options;
    this.shard = options.id;
    this.#options = options;
    this.#arrivals = new TenantArrivals(runtime, PRESENCE_HOLD_MS);
    const generations = new Generations(startRevision);
    this.#context = { entries, port: this, generations, budget, metrics, timeline, runtime, logger };
    this.#scheduleSweep();
  }

  registerLink(link: RegisteredLink): void {
    const { entries, linkWatch, self } = this.#options;
    const { home, linkId, role, app } = link;
    const state = this.#stateFor(home, link.placement);
    if (state === undefined) return entries(link.entry)?.linkRefused(linkId, this.#notOwner(home), this);
    if (this.#isRevoked(link)) {
      return entries(link.entry)?.linkRefused(linkId, { kind: "revoked" }, this);
    }
    const isNew = state.register(link, this.#revisionOf(home, link.placement));
    if (isNew && link.entry !== self)
      linkWatch.linkedElsewhere({ home, role, ...(app === undefined ? {} : { app }) });
  }

  withdrawLink(home: HomeId, linkId: LinkId, backWithinMs?: number): void {
    this.#homes.get(home)?.withdraw(linkId, backWithinMs);
  }

  submitCommand(command: SubmittedCommand): void {
    const state = this.#stateFor(command.home, command.placement);
    if (state !== undefined) return state.commands.submit(command);
    // One that was sent before may have run at an owner since: nobody may run it anew.
    const ending = command.isAgain ? ({ kind: "unknown" } as const) : this.#notOwner(command.home);
    this.#options.entries(command.entry)?.commandEnded(command.submission, ending);
  }

  withdrawCommand(home: HomeId, submission: SubmissionId): void {
    this.#homes.get(home)?.commands.withdraw(submission);
  }

  commandSettled(home: HomeId, linkId: LinkId, id: CommandId, outcome: "written" | "not-written"): void {
    this.#homes.get(home)?.commands.settle(linkId, id, outcome);
  }

  boxAnswered(home: HomeId, linkId: LinkId, id: CommandId, answer: BoxAnswer): void {
    this.#homes.get(home)?.answer(linkId, id, answer);
  }

  boxEvent(home: HomeId, linkId: LinkId, data: string): void {
    this.#homes.get(home)?.event(linkId, data);
  }

  boxNow(home: HomeId, linkId: LinkId, data: string): void {
    this.#homes.get(home)?.setNow(linkId, data);
  }

  readNow(home: HomeId, placement: KnownPlacement, answer: (outcome: NowOutcome) => void): void {
    answer(this.#stateFor(home, placement)?.readNow() ?? this.#notOwner(home));
  }

  describeHome(home: HomeId, answer: (status: HomeStatus | undefined) => void): void {
    const placement = this.#options.placements.best(home);
    answer(placement === undefined ? undefined : this.#stateFor(home, placement)?.describe());
  }

  /** An entry cannot be reached: it may come back. */
  entryAway(entry: EntryId): void {
    if (this.#isClosed) return;
    for (const state of this.#homes.values()) state.entryAway(entry);
    const timer = this.#options.runtime.schedule(LINK_AWAY_MS, () => {
      this.#awayTimers.delete(timer);
      for (const state of this.#homes.values()) state.dropAway(entry);
    });
    this.#awayTimers.add(timer);
  }

  /** An entry is gone for good. */
  entryGone(entry: EntryId): void {
    for (const state of this.#homes.values()) state.entryGone(entry);
  }

  /** A home's placement changed: lets it go or takes it on. */
  placementChanged(home: HomeId, placement: KnownPlacement): void {
    const state = this.#homes.get(home);
    if (placement.shard === this.shard) {
      if (state?.isOwned === true) return;
      this.#arrived(home, placement);
      state?.arrive(this.#arrivalOf(home));
      return;
    }
    this.#arrivals.forget(home);
    if (state?.isOwned !== true) return;
    const links = state.leave({ kind: "moved", placement });
    this.#options.timeline.note(home, "owner-lost", `${this.shard}: ${links} links given back`);
    this.#options.logger.info("owner-lost", { home, shard: this.shard, to: placement.shard, links });
    this.#forgetIfIdle(state);
  }

  homeDeleted(home: HomeId): void {
    this.#arrivals.forget(home);
    const state = this.#homes.get(home);
    if (state?.isOwned !== true) return;
    state.leave({ kind: "home-gone" });
    this.#forgetIfIdle(state);
  }

  /** The directory shows this key of the home's box, raw, base64url; undefined = none. */
  boxKeyChanged(home: HomeId, key: string | undefined): void {
    this.#homes.get(home)?.boxKeyChanged(key);
  }

  /** A token of a home stopped working. */
  tokenRevoked(home: HomeId, keyId: string): void {
    this.#homes.get(home)?.tokenRevoked(keyId);
  }

  gauges(): HomeGauges {
    let boxLinks = 0;
    let appLinks = 0;
    let commandsOpen = 0;
    for (const state of this.#homes.values()) {
      boxLinks += state.hasBox ? 1 : 0;
      appLinks += state.appCount;
      commandsOpen += state.commands.openCount;
    }
    return { boxLinks, appLinks, commandsOpen };
  }

  /** Homes that have a state here. */
  get size(): number {
    return this.#homes.size;
  }

  /** Ends every timer; a node whose peers part from it afterwards waits for none of them. Homes are left as they are. */
  close(): void {
    this.#isClosed = true;
    this.#options.runtime.cancel(this.#sweepTimer);
    for (const timer of this.#awayTimers) this.#options.runtime.cancel(timer);
    for (const state of this.#homes.values()) state.close();
  }

  /** The state of a home this shard owns by the newest of what is known here and to the sender (I2). */
  #stateFor(home: HomeId, senders: KnownPlacement): HomeState | undefined {
    const { placements } = this.#options;
    const placement = placements.best(home, senders);
    if (placement?.shard !== this.shard) return undefined;
    const known = this.#homes.get(home);
    if (known?.isOwned === true) return known;
    if (placements.learn(home, senders) || this.#arrivals.isJustPlaced(placement))
      this.#arrived(home, placement);
    if (known !== undefined) {
      known.arrive(this.#arrivalOf(home));
      return known;
    }
    const state = new HomeState(home, this.#context, this.#arrivalOf(home));
    this.#homes.set(home, state);
    return state;
  }

  #arrived(home: HomeId, placement: KnownPlacement): void {
    if (!this.#arrivals.note(home)) return;
    const { timeline, logger } = this.#options;
    timeline.note(home, "owner-gained", `${this.shard} at revision ${placement.revision}`);
    logger.info("owner-gained", { home, shard: this.shard, revision: placement.revision });
  }

  #arrivalOf(home: HomeId): HomeArrival {
    const sinceMs = this.#arrivals.sinceMs(home);
    const boxExpectedUntilMs = Math.max(
      sinceMs + PRESENCE_HOLD_MS,
      this.#arrivals.startedAtMs + this.#options.startHoldMs,
      this.#forgottenAtMs,
    );
    return { sinceMs, boxExpectedUntilMs };
  }

  /** What a link was verified with may count no more: its entry's view of the directory may be older than this node's. */
  #isRevoked({ home, role, credential, seenSeq }: RegisteredLink): boolean {
    const { isKeyRevoked, isBoxKeyReplaced } = this.#options;
    if (role === "app") return isKeyRevoked(credential);
    return seenSeq !== undefined && isBoxKeyReplaced(home, credential, seenSeq);
  }

  #revisionOf(home: HomeId, senders: KnownPlacement): number {
    return this.#options.placements.best(home, senders)?.revision ?? 0;
  }

  #notOwner(home: HomeId): NotOwner {
    return { kind: "not-owner", placement: this.#options.placements.best(home) };
  }

  #forgetIfIdle(state: HomeState): void {
    if (!state.isIdle()) return;
    state.close();
    this.#homes.delete(state.home);
    this.#context.generations.forget(state.lastGeneration);
    this.#forgottenAtMs = this.#options.runtime.monotonicMs();
  }

  #scheduleSweep(): void {
    this.#sweepTimer = this.#options.runtime.schedule(HOME_SWEEP_INTERVAL_MS, () => {
      for (const state of this.#homes.values()) {
        state.sweep();
        this.#forgetIfIdle(state);
      }
      this.#arrivals.sweep();
      this.#scheduleSweep();
    });
  }
}
