// What a node remembers of the directory beside the directory's copy: how far it was, so that less is noticed.
//
// Spec: R22. Kept in `watermark.json` of the data folder, which a restore of the database leaves alone.
// I1  The file is never ahead of what was seen: it may lag, and then misses a regression, but raises no false alarm.
// I2  It is replaced whole (rename), so that a kill in between leaves the one before.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorCodeOf, type Logger, type Runtime, type TimerHandle } from "@moor/runtime";

/** How far a directory was when last looked at. */
export interface Watermark {
  readonly residency: string;
  readonly incarnation: string;
  /** Number of the newest change seen. */
  readonly seq: number;
  /** Transaction that made that change; empty where unknown. */
  readonly tx: string;
  /** Highest revision seen, in the directory or elsewhere. */
  readonly revision: number;
}

const FILE_NAME = "watermark.json";
/** Longest time the file lags behind. Milliseconds. */
const WATERMARK_LAG_MS = 1_000;
const OWNER_ONLY_FILE = 0o600;

/** What a directory tells of itself, to be compared with a watermark. */
export interface DirectoryPosition {
  readonly incarnation: string;
  readonly seq: number;
  readonly lastRevision: number;
  /** Transaction that made the change numbered as the watermark's, where the directory still has it. */
  readonly txAtWatermark: string | undefined;
}

/** The watermark in a data folder; undefined when there is none, or none that can be read. */
export function readWatermark(dir: string): Watermark | undefined {
  try {
    const found = JSON.parse(readFileSync(join(dir, FILE_NAME), "utf8")) as Partial<Watermark>;
    const { residency, incarnation, seq, tx, revision } = found;
    if (typeof residency !== "string" || typeof incarnation !== "string" || typeof tx !== "string") return;
    if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(revision)) return undefined;
    return { residency, incarnation, seq: seq as number, tx, revision: revision as number };
  } catch {
    return undefined;
  }
}

/** Replaces the watermark in a data folder. Throws when it cannot be written. */
export function writeWatermark(dir: string, watermark: Watermark): void {
  const path = join(dir, FILE_NAME);
  writeFileSync(`${path}.new`, `${JSON.stringify(watermark)}\n`, { mode: OWNER_ONLY_FILE });
  renameSync(`${path}.new`, path);
}

/** What keeping a watermark needs. */
export interface WatermarkKeeperOptions {
  readonly dir: string;
  /** The watermark as it is now; undefined while there is none. */
  readonly current: () => Watermark | undefined;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

/** Keeps the file at most WATERMARK_LAG_MS behind. */
export class WatermarkKeeper {
  readonly #options: WatermarkKeeperOptions;
  #writing: TimerHandle | undefined;

  constructor(options: WatermarkKeeperOptions) {
    this.#options = options;
  }

  /** The watermark has changed. */
  writeSoon(): void {
    this.#writing ??= this.#options.runtime.schedule(WATERMARK_LAG_MS, () => this.#write());
  }

  /** Writes it for good. */
  close(): void {
    this.#options.runtime.cancel(this.#writing);
    this.#write();
  }

  #write(): void {
    this.#writing = undefined;
    const { dir, current, logger } = this.#options;
    const watermark = current();
    if (watermark === undefined) return;
    try {
      writeWatermark(dir, watermark);
    } catch (error) {
      logger.warn("directory-watermark-not-written", { reason: errorCodeOf(error, "unknown") });
    }
  }
}

/** Why a directory is regressed, for people; undefined when it knows at least what was seen. */
export function regressionDetail(position: DirectoryPosition, seen: Watermark): string | undefined {
  if (position.lastRevision < seen.revision) {
    return `it gave out revisions up to ${position.lastRevision}, this node has seen ${seen.revision}: moor directory fence --above ${seen.revision}`;
  }
  if (position.incarnation !== seen.incarnation) return undefined;
  if (position.seq < seen.seq) {
    return `it ends at change ${position.seq}, this node has seen ${seen.seq}: moor directory fence`;
  }
  const { txAtWatermark } = position;
  if (txAtWatermark !== undefined && seen.tx !== "" && txAtWatermark !== seen.tx) {
    return `its change ${seen.seq} is another one than this node has seen: moor directory fence`;
  }
  return undefined;
}
