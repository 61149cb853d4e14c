// A new file for a key, readable by its owner only.
//
// I1  The file and its room on the disk are claimed before the key exists: a key is never made that cannot be kept.
// I2  An existing file is never overwritten.

import { openNewFile } from "./new-file.ts";

/** A claimed, empty file that takes one secret. */
export interface SecretFile {
  /** Writes the secret and a line end, durably. */
  fill(text: string): void;
  /** Removes the file again. */
  abandon(): void;
}

/** Room that is claimed: more than any key or token takes. Bytes. */
const SECRET_BYTES_MAX = 512;

/** Claims `path` with mode 0600. Throws ConfigError for `option` when the file exists or cannot be made. */
export function claimSecretFile(option: string, path: string): SecretFile {
  const file = openNewFile(option, path, SECRET_BYTES_MAX);
  return {
    fill: (text) => {
      file.write(`${text}\n`);
      file.finish();
    },
    abandon: () => file.abandon(),
  };
}

/** Makes something that comes with a secret, and keeps the secret in the file at `path` if one is named (I1). */
export async function withSecretFile<Made>(
  { option, path }: { readonly option: string; readonly path: string | undefined },
  make: () => Promise<Made>,
  secretOf: (made: Made) => string,
): Promise<Made> {
  const file = path === undefined ? undefined : claimSecretFile(option, path);
  try {
    const made = await make();
    file?.fill(secretOf(made));
    return made;
  } catch (error) {
    file?.abandon();
    throw error;
  }
}
