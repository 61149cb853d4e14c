// Tells the directory, in batches and off the path of any hello, which boxes and apps said hello, and whether they follow
// shards: what a home's move is judged by.
//
// Spec: L22.   Invariants: those of write-behind.ts.
// I1  What the replica shows as noted within the hour is not noted again: a fleet that redials writes nothing.

import type { AppInstance, HomeId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import type { Directory, HomeSighting, Replica } from "../directory/directory.ts";
import { SIGHTING_FRESH_MS, SIGHTINGS_PER_WRITE_MAX } from "../directory/mutations/home-sightings.ts";
import { SEEN_FLUSH_INTERVAL_MS } from "../server-limits.ts";
import { WriteBehind } from "./write-behind.ts";

/** Hellos held while the directory is away. Count: a node's links, a few hundred bytes each. */
const HELD_MAX = 50_000;

/** What the recorder works on. */
export interface HomeSightingsOptions {
  readonly directory: Pick<Directory, "recordHomeSightings">;
  readonly replica: Pick<Replica, "home" | "homeApps">;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** Hellos on their way to the directory. Of a verified box or app only: what is noted here decides over moves. */
export class HomeSightings {
  readonly #options: HomeSightingsOptions;
  readonly #notes: WriteBehind<HomeSighting>;

  constructor(options: HomeSightingsOptions) {
    const { directory, runtime, logger } = options;
    this.#options = options;
    this.#notes = new WriteBehind({
      write: (sightings) => directory.recordHomeSightings(sightings),
      intervalMs: SEEN_FLUSH_INTERVAL_MS,
      batchMax: SIGHTINGS_PER_WRITE_MAX,
      heldMax: HELD_MAX,
      onFailed: (count) => logger.warn("sightings-not-recorded", { count }),
      runtime,
    });
  }

  /** A box that proved this key said hello. */
  noteBoxHello(home: HomeId, boxKey: string, hasShard: boolean): void {
    const known = this.#options.replica.home(home);
    if (known === undefined) return;
    const { boxHasShard, boxSeenAtMs } = known;
    const isKnown = boxHasShard === hasShard && this.#isFresh(boxSeenAtMs);
    this.#note(home, { home, app: null, hasShard, boxKey }, isKnown);
  }

  /** An app whose token is good said hello. */
  noteAppHello(home: HomeId, app: AppInstance, hasShard: boolean): void {
    const known = this.#options.replica.homeApps(home).find((each) => each.app === app);
    const isKnown = known?.hasShard === hasShard && this.#isFresh(known.lastSeenAtMs);
    this.#note(`${home}/${app}`, { home, app, hasShard }, isKnown);
  }

  /** Writes what is noted once more and stops. */
  close(): Promise<void> {
    return this.#notes.close();
  }

  /** What is known is noted only to correct what is on its way. */
  #note(key: string, sighting: HomeSighting, isKnown: boolean): void {
    if (!isKnown || this.#notes.isUnwritten(key)) this.#notes.note(key, sighting);
  }

  #isFresh(seenAtMs: number | null): boolean {
    return seenAtMs !== null && this.#options.runtime.wallMs() - seenAtMs < SIGHTING_FRESH_MS;
  }
}
