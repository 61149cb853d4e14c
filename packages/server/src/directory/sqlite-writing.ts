// What the writer thread does: it opens and migrates the database, then commits one batch after the other.
//
// I1  The connection is WAL and synchronous=FULL: what was answered as committed survives a kill and a power cut.

import { DatabaseSync } from "node:sqlite";
import { applyMigrations } from "./migrations.ts";
import type { Mutation } from "./mutations.ts";
import { commitBatch, reasonOf, type BatchOutcome } from "./sqlite-batch.ts";
import { createSqliteStatements } from "./sqlite-statements.ts";

/** What the thread is started with. */
export interface WriterSettings {
  readonly path: string;
  /** Largest size of the database, bytes. */
  readonly bytesMax: number;
  readonly wallMs: number;
}

/** What the thread says: how opening went (once, first), then the outcome of each batch, in order. */
export type WriterReport =
  | { readonly kind: "opened" }
  | { readonly kind: "too-new"; readonly version: number; readonly known: number }
  | { readonly kind: "not-opened"; readonly reason: string }
  | { readonly kind: "batch"; readonly outcome: BatchOutcome };

/** What the thread is told: a batch to commit, or to close. */
export type WriterOrder =
  | {
      readonly kind: "commit";
      readonly mutations: readonly Mutation[];
      /** Names the transaction. */
      readonly tx: string;
      readonly wallMs: number;
    }
  | { readonly kind: "close" };

/** How long a statement waits for another connection's lock, e.g. a backup's. Milliseconds. */
const BUSY_MS = 5_000;

/** The thread's end of the line to its asker. */
export interface WriterPort {
  postMessage(report: WriterReport): void;
  on(event: "message", listener: (order: WriterOrder) => void): unknown;
  close(): void;
}

/** Serves orders until told to close. */
export function serveWriter(port: WriterPort, settings: WriterSettings): void {
  const report = (said: WriterReport) => port.postMessage(said);
  const db = open(settings, report);
  if (db === undefined) {
    port.close();
    return;
  }
  const statements = createSqliteStatements(db);
  port.on("message", (order: WriterOrder) => {
    switch (order.kind) {
      case "commit":
        return report({ kind: "batch", outcome: commitBatch(db, statements, order.mutations, order) });
      case "close":
        db.close();
        return port.close();
    }
  });
  report({ kind: "opened" });
}

function open(settings: WriterSettings, report: (said: WriterReport) => void): DatabaseSync | undefined {
  try {
    const db = new DatabaseSync(settings.path, { timeout: BUSY_MS });
    db.exec("pragma journal_mode = wal; pragma synchronous = full;");
    const pageBytes = Number(db.prepare("pragma page_size").get()?.["page_size"] ?? 4096);
    db.exec(`pragma max_page_count = ${Math.max(1, Math.floor(settings.bytesMax / pageBytes))}`);
    const migrated = applyMigrations(db, settings.wallMs);
    if (migrated.kind === "current") return db;
    db.close();
    report({ kind: "too-new", version: migrated.version, known: migrated.known });
  } catch (error) {
    report({ kind: "not-opened", reason: reasonOf(error) });
  }
  return undefined;
}
