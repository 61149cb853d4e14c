// Lists in pages: id order, or newest first by a number; an opaque cursor.

import { ProtocolError } from "@moor/protocol";
import { integerAt } from "./columns.ts";
import type { Page, PageRequest } from "./records.ts";
import type { Row } from "./statements.ts";

/** Items on a page when nothing is asked. */
export const PAGE_LIMIT_DEFAULT = 100;
/** Largest page. */
export const PAGE_LIMIT_MAX = 500;
/** Longest id a cursor can hold, characters. */
const CURSOR_ID_CHARS_MAX = 128;

/**
 * One page: reads one item more than asked to know whether there is a next page.
 *
 * @param read gives items with ids after `afterId` (empty = from the first), in id order, at most `limit`
 * @throws ProtocolError `invalid_request` for a limit outside 1–500 or a cursor that is none
 */
export function pageOf<Item extends { readonly id: string }>(
  page: PageRequest,
  read: (afterId: string, limit: number) => readonly Item[],
): Page<Item> {
  const { limit, after } = page;
  assertLimit(limit);
  const found = read(after === undefined ? "" : parseCursor(after), limit + 1);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, next: found.length > limit && last !== undefined ? encodeCursor(last.id) : null };
}

/**
 * One page of rows that are numbered, the highest number first.
 *
 * @param column the number's column
 * @param read gives rows with numbers below `before`, descending, at most `limit`
 * @throws ProtocolError as `pageOf`
 */
export async function pageByNumber<Item>(
  page: PageRequest,
  column: string,
  parse: (row: Row) => Item,
  read: (before: number, limit: number) => Promise<readonly Row[]>,
): Promise<Page<Item>> {
  const { limit, after } = page;
  assertLimit(limit);
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(parseCursor(after));
  if (!Number.isSafeInteger(before)) throw badCursor();
  const rows = await read(before, limit + 1);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const isMore = rows.length > limit && last !== undefined;
  return { items: shown.map(parse), next: isMore ? encodeCursor(String(integerAt(last, column))) : null };
}

function assertLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= PAGE_LIMIT_MAX) return;
  throw new ProtocolError("invalid_request", {
    param: "limit",
    message: `limit is an integer from 1 to ${PAGE_LIMIT_MAX}`,
  });
}

function encodeCursor(id: string): string {
  return Buffer.from(id).toString("base64url");
}

function parseCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString();
  if (cursor === "" || id.length > CURSOR_ID_CHARS_MAX || encodeCursor(id) !== cursor) throw badCursor();
  return id;
}

function badCursor(): ProtocolError {
  return new ProtocolError("invalid_request", {
    param: "after",
    message: "after is not the next of an earlier page",
  });
}
