// Where a link record is kept between runs: the port.
//
// Spec: L12, L13.

/** A place for one record. */
export interface LinkRecordStore {
  /** The record's text; undefined for none. Rejects when it cannot be read. */
  load(): Promise<string | undefined>;
  /** Replaces the record, whole or not at all. Rejects when it cannot be written; never called while it runs. */
  save(text: string): Promise<void>;
  /** Puts a corrupt record aside, so that the next save does not destroy it. Rejects when it cannot. */
  setAside(): Promise<void>;
}

/** A store that forgets everything with the process: for apps without a localStorage. */
export function createMemoryRecordStore(): LinkRecordStore {
  let kept: string | undefined;
  return {
    load: () => Promise.resolve(kept),
    save: (text) => {
      kept = text;
      return Promise.resolve();
    },
    setAside: () => {
      kept = undefined;
      return Promise.resolve();
    },
  };
}
