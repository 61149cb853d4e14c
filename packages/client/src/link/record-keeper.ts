// A client's link record in memory, and its way to the store: what is kept between runs, written one after another.
//
// Spec: L12, L13, L29. Beside what L12 names the record holds `service_keys`, the keys learned from hello_oks.
// I1  Nothing here ever delays or ends a link: what fails is warned of once until it works again.
// I2  One write at a time; of several orders that wait the newest is written. What the store holds already is not written.

import { encodeLinkRecord, parseLinkRecord, type HomeId, type LinkRecord } from "@moor/protocol";
import type { LinkRecordStore } from "./record-store.ts";

/** What goes wrong with a record: it cannot be read, it is corrupt and was set aside, it cannot be written. */
export type RecordWarning = "record-unreadable" | "record-corrupt" | "record-unwritable";

/** What a record tells a client that starts. */
export interface LoadedRecord {
  readonly record: LinkRecord | undefined;
  /** Raw keys, base64url, newest first; empty if the record is of another home. */
  readonly learnedKeys: readonly string[];
}

const KEYS_MEMBER = `"service_keys":`;

/** Keeps the record of one client. */
export class RecordKeeper {
  readonly #store: LinkRecordStore;
  readonly #onWarning: (warning: RecordWarning) => void;
  #unknownMembers: readonly string[] = [];
  /** What the store holds as far as is known. */
  #storedText: string | undefined;
  #wantedText: string | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  #hasWarned = false;

  constructor(store: LinkRecordStore, onWarning: (warning: RecordWarning) => void) {
    this.#store = store;
    this.#onWarning = onWarning;
  }

  /** Reads the record once, at start. Never rejects. */
  async load(home: HomeId): Promise<LoadedRecord> {
    const none = { record: undefined, learnedKeys: [] };
    const text = await this.#read();
    if (text === undefined) return none;
    const record = parseLinkRecord(text);
    if (record === undefined) {
      await this.#setAside();
      return none;
    }
    const isKeys = (member: string) => member.startsWith(KEYS_MEMBER);
    const members = record.unknownMembers ?? [];
    this.#storedText = text;
    this.#unknownMembers = members.filter((member) => !isKeys(member));
    return { record, learnedKeys: record.home === home ? keysOf(members.find(isKeys)) : [] };
  }

  /** The record should say this from now on. */
  keep(home: HomeId, host: string | undefined, learnedKeys: readonly string[]): void {
    const keys = learnedKeys.length === 0 ? [] : [KEYS_MEMBER + JSON.stringify(learnedKeys)];
    const unknownMembers = [...this.#unknownMembers, ...keys];
    this.#wantedText = encodeLinkRecord({ home, host, unknownMembers });
    if (!this.#isWriting) this.#writing = this.#write();
  }

  /** Resolves when no write is under way. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#wantedText !== undefined) {
      const text = this.#wantedText;
      this.#wantedText = undefined;
      if (text !== this.#storedText) await this.#save(text);
    }
    this.#isWriting = false;
  }

  async #save(text: string): Promise<void> {
    try {
      await this.#store.save(text);
      this.#storedText = text;
      this.#hasWarned = false;
    } catch {
      // Whether the old or the new one is there now is not known.
      this.#storedText = undefined;
      if (!this.#hasWarned) this.#onWarning("record-unwritable");
      this.#hasWarned = true;
    }
  }

  async #read(): Promise<string | undefined> {
    try {
      return (await this.#store.load())?.trim();
    } catch {
      this.#onWarning("record-unreadable");
      return undefined;
    }
  }

  async #setAside(): Promise<void> {
    this.#onWarning("record-corrupt");
    await this.#store.setAside().catch(() => {});
  }
}

function keysOf(member: string | undefined): readonly string[] {
  if (member === undefined) return [];
  const keys: unknown = JSON.parse(member.slice(KEYS_MEMBER.length));
  return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : [];
}
