// Ids that name something for its lifetime and say nothing about it.

import { randomHex, type Runtime } from "@moor/runtime";

/** `<prefix>_` and 32 hex characters from 128 random bits. */
export function mintId(prefix: "req" | "poll", runtime: Pick<Runtime, "randomBytes">): string {
  return `${prefix}_${randomHex(runtime, 16)}`;
}
