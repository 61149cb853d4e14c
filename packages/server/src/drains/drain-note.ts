// DIR/drain.json: what a node leaves to its next process, so that somebody can tell who came back.
//
// Spec: L24; design "Drains and restarts" (report).
// I1  Nobody's name is in it: a client is a mark, a short hash with a salt of this note.
// I2  It is bounded: beyond NOTED_MAX clients a random sample is noted, and the file is read up to NOTE_BYTES_MAX.
// I3  What cannot be read is no note: it delays no start.

import { hash } from "node:crypto";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Runtime } from "@moor/runtime";
import { z } from "zod";
import { replaceFile } from "../replace-file.ts";
import type { LinkedClient } from "./link-drain-port.ts";

/** Name of the file in the data directory. */
export const DRAIN_NOTE_FILE = "drain.json";

/** Most clients a note tells of. Count. */
export const NOTED_MAX = 50_000;

/** Length of a mark: 72 bits, so that two of NOTED_MAX clients are hardly ever alike. Characters. */
const MARK_CHARS = 12;

/** Largest file that is read. Bytes: NOTED_MAX marks fit twice. */
const NOTE_BYTES_MAX = 2 * 1024 * 1024;

/** Longest time that a note may tell of. Milliseconds: a day. */
const NOTED_MS_MAX = 86_400_000;

const count = z.int().min(0);
const length = count.max(NOTED_MS_MAX);
/** Wall-clock milliseconds that Date can show. */
const instant = z.number().min(0).max(8.64e15);
const noteSchema = z.object({
  v: z.literal(1),
  node: z.string(),
  /** Wall-clock milliseconds when the first close was begun. */
  startedAtMs: instant,
  /** When the last link had ended; null while links are being closed. */
  closedAtMs: instant.nullable(),
  spreadMs: length,
  /** Milliseconds from the first close to the end of the last wave's spread. */
  endMs: length,
  waves: count,
  /** Links at the start. */
  links: count,
  closed: count,
  destroyed: count,
  /** Links a second that the node can accept when it does nothing else. */
  acceptRate: z.number(),
  isMeasured: z.boolean(),
  salt: z.string(),
  /** Marks of the clients that were linked, those that came back elsewhere already left out. */
  marks: z.array(z.string().max(MARK_CHARS)).max(NOTED_MAX),
  /** Clients that came back to another node before this process ended. */
  elsewhere: count,
});

/** What a note tells. */
export type DrainNote = Readonly<z.output<typeof noteSchema>>;

/** The mark of a client in a note with this salt. */
export function markOf(salt: string, { home, role, app }: LinkedClient): string {
  return hash("sha256", `${salt}\n${role}\n${home}\n${app ?? ""}`, "base64url").slice(0, MARK_CHARS);
}

/** Marks of `clients`, of `total` there are: all, or about NOTED_MAX of them drawn by lot. */
export function markClients(
  clients: Iterable<LinkedClient>,
  total: number,
  salt: string,
  runtime: Pick<Runtime, "random">,
): string[] {
  const share = NOTED_MAX / Math.max(1, total);
  const marks: string[] = [];
  for (const client of clients) {
    if (marks.length >= NOTED_MAX) break;
    if (share >= 1 || runtime.random() < share) marks.push(markOf(salt, client));
  }
  return marks;
}

/** Writes the note. Throws what node:fs throws. */
export function writeDrainNote(dataDir: string, note: DrainNote): void {
  replaceFile(join(dataDir, DRAIN_NOTE_FILE), `${JSON.stringify(note)}\n`);
}

/** The note of an earlier process, if there is one that can be read. */
export function readDrainNote(dataDir: string): DrainNote | undefined {
  const path = join(dataDir, DRAIN_NOTE_FILE);
  try {
    if (statSync(path).size > NOTE_BYTES_MAX) return undefined;
    return noteSchema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}

/** Forgets the note. Never throws: what is left over is replaced by the next one. */
export function deleteDrainNote(dataDir: string): void {
  try {
    rmSync(join(dataDir, DRAIN_NOTE_FILE), { force: true });
  } catch {
    // A folder that cannot be written is reported by those who need it.
  }
}
