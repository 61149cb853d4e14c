// The links of one home: at most one of its box, and those of its apps.
//
// Spec: L23, L25, L31.
// I1  The box link that is here is the live one: it has the highest generation known of the home.
// I2  A link whose entry is out of reach is kept for a while and told nothing: its entry registers it again.

import type {
  HomeShardPort,
  LinkEnding,
  LinkEntryPort,
  LinkId,
  LinkRefusal,
  Presence,
  RegisteredLink,
} from "../../peer/link-ports.ts";
import type { EntryId } from "../../peer/peer-link.ts";
import type { HomeContext, LinkEntryLookup } from "./home-context.ts";

/** A link that the shard has taken. Instants are its monotonic milliseconds. */
export interface HeldLink {
  readonly link: RegisteredLink;
  readonly takenAtMs: number;
  /** Since when its entry has been out of reach; undefined while it is in reach. */
  awaySinceMs: number | undefined;
}

export interface HeldBox extends HeldLink {
  readonly generation: number;
}

export class HomeLinks {
  readonly #entries: LinkEntryLookup;
  /** The shard, as entries hear of it. */
  readonly #port: HomeShardPort;
  readonly #apps = new Map<LinkId, HeldLink>();
  box: HeldBox | undefined;

  constructor({ entries, port }: Pick<HomeContext, "entries" | "port">) {
    this.#entries = entries;
    this.#port = port;
  }

  get appCount(): number {
    return this.#apps.size;
  }

  app(linkId: LinkId): HeldLink | undefined {
    return this.#apps.get(linkId);
  }

  apps(): Iterable<HeldLink> {
    return this.#apps.values();
  }

  addApp(link: RegisteredLink, nowMs: number): void {
    this.#apps.set(link.linkId, { link, takenAtMs: nowMs, awaySinceMs: undefined });
  }

  removeApp(linkId: LinkId): boolean {
    return this.#apps.delete(linkId);
  }

  /** Every link, the box's too. */
  *all(): Iterable<HeldLink> {
    if (this.box !== undefined) yield this.box;
    yield* this.#apps.values();
  }

  clear(): void {
    this.box = undefined;
    this.#apps.clear();
  }

  /** Tells a link's entry that the shard has taken it. */
  accept(
    { entry, linkId }: RegisteredLink,
    taken: { readonly generation: number | undefined; readonly presence: Presence },
  ): void {
    this.#entries(entry)?.linkAccepted(linkId, taken, this.#port);
  }

  /** Tells a link's entry that the shard does not take it. */
  refuse({ entry, linkId }: RegisteredLink, refusal: LinkRefusal): void {
    this.#entries(entry)?.linkRefused(linkId, refusal, this.#port);
  }

  /** Tells a link's entry that the shard lets it go. */
  letGo({ link }: HeldLink, ending: LinkEnding): void {
    this.#entries(link.entry)?.closeLink(link.linkId, ending, this.#port);
  }

  /** Calls `tell` once for each entry in reach that holds app links of the home. */
  tellApps(tell: (entry: LinkEntryPort, linkIds: readonly LinkId[]) => void): void {
    const byEntry = new Map<EntryId, LinkId[]>();
    for (const { link, awaySinceMs } of this.#apps.values()) {
      if (awaySinceMs !== undefined) continue;
      const linkIds = byEntry.get(link.entry);
      if (linkIds === undefined) byEntry.set(link.entry, [link.linkId]);
      else linkIds.push(link.linkId);
    }
    for (const [entry, linkIds] of byEntry) {
      const port = this.#entries(entry);
      if (port !== undefined) tell(port, linkIds);
    }
  }
}
