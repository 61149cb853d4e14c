// Random ids as text. Node only: browsers mint none.

import type { Runtime } from "./runtime.ts";

/** Random bytes as hexadecimal digits, two for each. */
export function randomHex(runtime: Pick<Runtime, "randomBytes">, byteCount: number): string {
  return Buffer.from(runtime.randomBytes(byteCount)).toString("hex");
}
