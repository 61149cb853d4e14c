// Which of the two answer forms of Streamable HTTP a caller takes.
//
// Spec: T11.

import type { AcceptedTypes } from "./caller-answer.ts";

/** Reads an Accept header; absent = everything. A type with `q=0` is refused by the caller. */
export function parseAccept(header: string | undefined): AcceptedTypes {
  if (header === undefined || header.trim() === "") return { json: true, sse: true };
  const ranges = header.split(",").map((member) => member.trim().toLowerCase());
  return {
    json: isAccepted(ranges, "application/json", "application/*"),
    sse: isAccepted(ranges, "text/event-stream", "text/*"),
  };
}

function isAccepted(ranges: readonly string[], exact: string, wide: string): boolean {
  for (const wanted of [exact, wide, "*/*"]) {
    const range = ranges.find((candidate) => candidate.split(";")[0]?.trim() === wanted);
    if (range !== undefined) return !/;\s*q=0(\.0*)?\s*(;|$)/.test(range);
  }
  return false;
}
