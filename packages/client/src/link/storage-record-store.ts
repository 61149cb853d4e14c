// An app's link record in the browser: one key of localStorage, or memory where there is none.
//
// Spec: L12, L13; docs/protocol/link-states.md names the key.
// I1  A localStorage that is absent, forbidden or full never stops a link.

import { createMemoryRecordStore, type LinkRecordStore } from "./record-store.ts";

/** The one key of localStorage that an app uses. Its value is the record of L12. */
export const LINK_RECORD_KEY = "moor.link.v1";

/** The part of the DOM's Storage that is used. */
interface DomStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A store on the page's localStorage; in memory in workers and where pages may not have one. */
export function createStorageRecordStore(
  storage: DomStorage | undefined = platformStorage(),
): LinkRecordStore {
  if (storage === undefined) return createMemoryRecordStore();
  // Async, so that what localStorage throws (forbidden, full) rejects.
  return {
    load: async () => storage.getItem(LINK_RECORD_KEY) ?? undefined,
    save: async (text) => storage.setItem(LINK_RECORD_KEY, text),
    setAside: async () => {
      storage.setItem(`${LINK_RECORD_KEY}.bad`, storage.getItem(LINK_RECORD_KEY) ?? "");
      storage.removeItem(LINK_RECORD_KEY);
    },
  };
}

/** Even to look at `localStorage` throws where it is forbidden; some web views have null in its place. */
function platformStorage(): DomStorage | undefined {
  try {
    return (globalThis as unknown as { readonly localStorage?: DomStorage | null }).localStorage ?? undefined;
  } catch {
    return undefined;
  }
}
