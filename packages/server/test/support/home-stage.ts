// One shard's homes on virtual time, and entries that note what they are told.

import type { AppInstance, CommandId, HomeId } from "@moor/protocol";
import { createSilentLogger, type Logger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import type { ShardId } from "../../src/directory/directory.ts";
import type { LinkedClient } from "../../src/drains/link-drain-port.ts";
import { ByteBudget } from "../../src/entry/byte-budget.ts";
import { createPlacementKnowledge, type PlacementKnowledge } from "../../src/entry/placement-knowledge.ts";
import { createTimeline } from "../../src/moves/timeline.ts";
import { createMetrics, type Metrics } from "../../src/operator/metrics.ts";
import type {
  HomeShardPort,
  HomeStatus,
  LinkEntryPort,
  LinkId,
  NowOutcome,
  RegisteredLink,
  SubmissionId,
  SubmittedCommand,
} from "../../src/peer/link-ports.ts";
import type { EntryId, KnownPlacement } from "../../src/peer/peer-link.ts";
import { HomeTable } from "../../src/shard/home/home-table.ts";

export const HOME = "h1" as HomeId;
/** The owner of HOME at first. */
export const OWNED: KnownPlacement = { shard: "s1" as ShardId, revision: 1_000 };
/** HOME's next placement, elsewhere. */
export const MOVED: KnownPlacement = { shard: "s2" as ShardId, revision: 2_000 };
export const BOX_KEY = "box-key-1";

/** What an entry was told, with its arguments but for the port to answer to. */
export type Told = readonly [what: keyof LinkEntryPort, ...args: readonly unknown[]];

/** An entry that writes every command at once, unless `isWriting` says otherwise. */
export class RecordingEntry implements LinkEntryPort {
  readonly entry: EntryId;
  readonly told: Told[] = [];
  /** What it does with a command for a box: writes it, cannot, or says nothing yet. */
  writing: "written" | "not-written" | "later" = "written";

  constructor(id: string) {
    this.entry = id as EntryId;
  }

  linkAccepted: LinkEntryPort["linkAccepted"] = (linkId, taken) => this.#note("linkAccepted", linkId, taken);
  linkRefused: LinkEntryPort["linkRefused"] = (linkId, refusal) => this.#note("linkRefused", linkId, refusal);
  deliverCommand: LinkEntryPort["deliverCommand"] = (command, shard) => {
    this.#note("deliverCommand", command);
    const { home, linkId, id } = command;
    if (this.writing !== "later") shard.commandSettled(home, linkId, id, this.writing);
  };
  commandWritten: LinkEntryPort["commandWritten"] = (...args) => this.#note("commandWritten", ...args);
  commandEnded: LinkEntryPort["commandEnded"] = (...args) => this.#note("commandEnded", ...args);
  sendEvent: LinkEntryPort["sendEvent"] = (...args) => this.#note("sendEvent", ...args);
  sendPresence: LinkEntryPort["sendPresence"] = (linkIds, presence) =>
    this.#note("sendPresence", linkIds, presence);
  closeLink: LinkEntryPort["closeLink"] = (linkId, ending) => this.#note("closeLink", linkId, ending);

  /** Everything told since the last look. */
  take(): Told[] {
    return this.told.splice(0);
  }

  /** What was told of one kind since the last look, without its name. */
  takeOnly(what: keyof LinkEntryPort): unknown[][] {
    return this.take()
      .filter(([name]) => name === what)
      .map(([, ...args]) => args);
  }

  /** How commands ended since the last look: `[submission, kind]`. */
  takeEndings(): (readonly [unknown, string])[] {
    return this.takeOnly("commandEnded").map(([submission, ending]) => [
      submission,
      (ending as { readonly kind: string }).kind,
    ]);
  }

  #note(what: keyof LinkEntryPort, ...args: readonly unknown[]): void {
    this.told.push([what, ...args]);
  }
}

export interface HomeStageOptions {
  readonly logger?: Logger;
  readonly startRevision?: number;
  readonly startHoldMs?: number;
  readonly budgetBytes?: number;
}

export class HomeStage {
  readonly runtime = new VirtualRuntime();
  readonly placements: PlacementKnowledge = createPlacementKnowledge(undefined);
  readonly timeline = createTimeline(this.runtime);
  readonly metrics: Metrics = createMetrics({ withProcess: false });
  readonly budget: ByteBudget;
  /** The shard's own node. */
  readonly near = new RecordingEntry("e1");
  /** Another node. */
  readonly far = new RecordingEntry("e2");
  readonly gone = new Set<EntryId>();
  readonly revoked = new Set<string>();
  /** Keys that were a box's until change `seq`, as the shard's node knows. */
  readonly replacedKeys = new Set<string>();
  readonly seq = 10;
  readonly linkedElsewhere: LinkedClient[] = [];
  readonly homes: HomeTable;
  #count = 0;

  constructor(options: HomeStageOptions = {}) {
    this.budget = new ByteBudget(options.budgetBytes ?? 64 * 1024 * 1024);
    this.placements.learn(HOME, OWNED);
    this.homes = new HomeTable({
      id: OWNED.shard,
      placements: this.placements,
      entries: (id) =>
        this.gone.has(id) ? undefined : [this.near, this.far].find(({ entry }) => entry === id),
      isKeyRevoked: (keyId) => this.revoked.has(keyId),
      isBoxKeyReplaced: (_home, key, seenSeq) => this.replacedKeys.has(key) && seenSeq <= this.seq,
      startRevision: () => options.startRevision ?? 0,
      startHoldMs: options.startHoldMs ?? 15_000,
      budget: this.budget,
      self: this.near.entry,
      linkWatch: { linkedElsewhere: (client) => this.linkedElsewhere.push(client) },
      metrics: this.metrics,
      timeline: this.timeline,
      runtime: this.runtime,
      logger: options.logger ?? createSilentLogger(),
    });
  }

  get port(): HomeShardPort {
    return this.homes;
  }

  /** A stage whose box is not expected any more. */
  static settled(options: HomeStageOptions = {}): HomeStage {
    const stage = new HomeStage(options);
    stage.runtime.advance(15_000);
    return stage;
  }

  /** Registers a link of the home's box; returns its id. */
  box(entry = this.near, fields: Partial<RegisteredLink> = {}): LinkId {
    const linkId = this.#id("box") as LinkId;
    this.homes.registerLink({ ...this.#link(entry, linkId), role: "box", app: undefined, ...fields });
    return fields.linkId ?? linkId;
  }

  /** Registers a link of an app; returns its id. */
  app(entry = this.near, fields: Partial<RegisteredLink> = {}): LinkId {
    const linkId = this.#id("app") as LinkId;
    const app = "phone" as AppInstance;
    this.homes.registerLink({
      ...this.#link(entry, linkId),
      role: "app",
      app,
      credential: "key_1",
      ...fields,
    });
    return fields.linkId ?? linkId;
  }

  /** Submits a command; returns its submission. */
  submit(id: string, fields: Partial<SubmittedCommand> = {}, entry = this.near): SubmissionId {
    const submission = this.#id("sub") as SubmissionId;
    this.homes.submitCommand({
      submission,
      entry: entry.entry,
      home: HOME,
      id: id as CommandId,
      app: "phone" as AppInstance,
      remainingMs: 10_000,
      data: `{"do":"${id}"}`,
      placement: OWNED,
      isAgain: false,
      ...fields,
    });
    return fields.submission ?? submission;
  }

  /** The box answers with a result. */
  result(linkId: LinkId, id: string, data = '"done"'): void {
    this.homes.boxAnswered(HOME, linkId, id as CommandId, { kind: "result", data });
  }

  move(to: KnownPlacement = MOVED): void {
    this.placements.learn(HOME, to);
    this.homes.placementChanged(HOME, to);
  }

  status(): HomeStatus | undefined {
    let found: HomeStatus | undefined;
    this.homes.describeHome(HOME, (status) => (found = status));
    return found;
  }

  now(): NowOutcome | undefined {
    let found: NowOutcome | undefined;
    this.homes.readNow(HOME, OWNED, (outcome) => (found = outcome));
    return found;
  }

  /** Generation of the live box link. */
  generation(): number {
    return this.status()?.box?.generation ?? 0;
  }

  async metric(name: string): Promise<string | undefined> {
    const text = await this.metrics.registry.metrics();
    return text
      .split("\n")
      .find((line) => line.startsWith(name))
      ?.slice(name.length + 1);
  }

  #link(entry: RecordingEntry, linkId: LinkId): Omit<RegisteredLink, "role" | "app"> {
    const { entry: id } = entry;
    const placement = OWNED;
    return {
      linkId,
      entry: id,
      home: HOME,
      isFollowing: true,
      credential: BOX_KEY,
      generation: undefined,
      placement,
    };
  }

  #id(prefix: string): string {
    this.#count += 1;
    return `${prefix}${this.#count}`;
  }
}
