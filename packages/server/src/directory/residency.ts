// What a directory is founded with: its residency and its first token key.
//
// I1  Founding an existing directory changes nothing: the name it has stays, and another one asked for is refused.

import { ConfigError, type Runtime } from "@moor/runtime";
import type { Mutation } from "./mutations.ts";

/** Residency of a directory that was never told another name. */
const RESIDENCY_DEFAULT = "global";

/** The mutation that founds a directory which is still empty. */
export function foundation(residency: string | undefined, runtime: Runtime): Mutation {
  return {
    kind: "found-residency",
    name: residency ?? RESIDENCY_DEFAULT,
    incarnation: randomHex(runtime, 8),
    tokenKey: {
      id: `tk_${randomHex(runtime, 4)}`,
      secret: Buffer.from(runtime.randomBytes(32)).toString("base64url"),
    },
    wallMs: Math.trunc(runtime.wallMs()),
  };
}

/** Random bytes as hexadecimal digits, two for each. */
export function randomHex(runtime: Pick<Runtime, "randomBytes">, byteCount: number): string {
  return Buffer.from(runtime.randomBytes(byteCount)).toString("hex");
}

/** Throws ConfigError for a name that is none. */
export function assertResidencyName(name: string | undefined): void {
  if (name === undefined || /^[a-z0-9-]{1,32}$/.test(name)) return;
  throw new ConfigError("residency", JSON.stringify(name), "1–32 characters of a–z, 0–9 and -");
}

/** Throws ConfigError when another residency than the directory's own is asked for. */
export function assertSameResidency(asked: string | undefined, found: string): void {
  if (asked === undefined || asked === found) return;
  throw new ConfigError("residency", `"${asked}" for a directory of "${found}"`, `"${found}"`);
}
