// An app's record in a browser: one key, and no localStorage is no reason not to link (L12, L13).

import { createStorageRecordStore, LINK_RECORD_KEY } from "@moor/client/app";
import { verifies } from "@moor/testkit";
import { expect, onTestFinished, test, vi } from "vitest";

function fakeStorage(fault?: "forbidden" | "full") {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => {
      if (fault === "forbidden") throw new DOMException("denied", "SecurityError");
      return items.get(key) ?? null;
    },
    setItem: (key: string, value: string) => {
      if (fault !== undefined) throw new DOMException("no room", "QuotaExceededError");
      items.set(key, value);
    },
    removeItem: (key: string) => void items.delete(key),
  };
}

verifies("L12", "the record is the value of one documented key", async () => {
  const storage = fakeStorage();
  const store = createStorageRecordStore(storage);
  expect(await store.load()).toBeUndefined();
  await store.save('{"v":1}');
  expect([...storage.items]).toEqual([["moor.link.v1", '{"v":1}']]);
  expect(await store.load()).toBe('{"v":1}');
});

verifies("L13", "a corrupt record goes to a key beside it", async () => {
  const storage = fakeStorage();
  const store = createStorageRecordStore(storage);
  await store.save("corrupt");
  await store.setAside();
  expect([...storage.items]).toEqual([[`${LINK_RECORD_KEY}.bad`, "corrupt"]]);
});

verifies("L12", "a storage that is forbidden or full rejects, and throws nothing at its user", async () => {
  await expect(createStorageRecordStore(fakeStorage("forbidden")).load()).rejects.toThrow("denied");
  await expect(createStorageRecordStore(fakeStorage("full")).save("x")).rejects.toThrow("no room");
});

test("without a localStorage the record is kept in memory", async () => {
  const store = createStorageRecordStore(undefined);
  await store.save("x");
  expect(await store.load()).toBe("x");
  await store.setAside();
  expect(await store.load()).toBeUndefined();
});

verifies("L12", "a web view whose localStorage is null keeps the record in memory", async () => {
  vi.stubGlobal("localStorage", null);
  onTestFinished(() => void vi.unstubAllGlobals());
  const store = createStorageRecordStore();
  await store.save('{"v":1}');
  expect(await store.load()).toBe('{"v":1}');
});
