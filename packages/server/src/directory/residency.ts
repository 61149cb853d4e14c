// What a directory is founded with: its residency, its first token key and its first service key.
//
// I1  Founding an existing directory changes nothing: the name it has stays, and another one asked for is refused.

import { randomHex, ConfigError, type Runtime } from "@moor/runtime";
import { textAt } from "./columns.ts";
import type { Mutation } from "./mutations.ts";
import type { FoundResidency } from "./mutations/residency-mutations.ts";
import type { Row } from "./statements.ts";
import { mintServiceKey } from "./service-keys.ts";
import { isSealed, type TokenKeyVault } from "./token-key-vault.ts";

/** Residency of a directory that was never told another name. */
const RESIDENCY_DEFAULT = "global";

/** What a directory that is still empty becomes. */
export interface Foundation {
  /** Name, `^[a-z0-9-]{1,32}$`. Default: what the directory has, `global` for a new one. */
  readonly residency?: string | undefined;
  /** Whether corrections are on from the start. Default false. Spec R25. */
  readonly isCorrectingAtFirst?: boolean | undefined;
}

/** The mutation that founds a directory which is still empty. */
export function foundation(asked: Foundation, vault: TokenKeyVault, runtime: Runtime): FoundResidency {
  const name = asked.residency ?? RESIDENCY_DEFAULT;
  const id = `tk_${randomHex(runtime, 8)}`;
  return {
    kind: "found-residency",
    name,
    incarnation: randomHex(runtime, 8),
    isCorrecting: asked.isCorrectingAtFirst ?? false,
    tokenKey: { id, sealedSecret: vault.seal(name, id, runtime.randomBytes(32)) },
    serviceKey: mintServiceKey(name, vault, runtime),
  };
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

/**
 * The mutation that seals what schema 1 kept bare, if there is any.
 *
 * @param rows of READ.sealingKeys
 * @throws ConfigError when a key is sealed under another node secret
 */
export function resealing(
  residency: string,
  rows: readonly Row[],
  vault: TokenKeyVault,
): Mutation | undefined {
  const bare = rows.filter((row) => !isSealed(textAt(row, "secret")));
  for (const row of rows) {
    const id = textAt(row, "id");
    const isOpen = bare.includes(row) || vault.open(residency, id, textAt(row, "secret")) !== undefined;
    if (!isOpen) {
      throw new ConfigError(
        "nodeSecretFile",
        "a secret that does not open the token keys",
        "the residency's own",
      );
    }
  }
  if (bare.length === 0) return undefined;
  const secrets = bare.map((row) => {
    const id = textAt(row, "id");
    const secret = new Uint8Array(Buffer.from(textAt(row, "secret"), "base64url"));
    return { id, sealedSecret: vault.seal(residency, id, secret) };
  });
  return { kind: "reseal-token-keys", secrets };
}
