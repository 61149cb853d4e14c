// Local failures that are somebody's to mend: a wrong setting (ConfigError) or a bug (invariant).

/** A setting that cannot be used. Programs print it and exit with code 2. */
export class ConfigError extends Error {
  readonly code = "config_error";
  /** Option, flag or environment variable at fault, as the user writes it, e.g. `--port`. */
  readonly option: string;

  /**
   * @param option the setting at fault as the user writes it
   * @param got what was given, already free of secrets
   * @param expected what would have been accepted
   */
  constructor(option: string, got: string, expected: string) {
    super(`${option}: got ${got}, expected ${expected}`);
    this.name = "ConfigError";
    this.option = option;
  }
}

/** The code of a caught error (`ENOENT`), fit for messages and logs; `otherwise` when it has none. */
export function errorCodeOf(error: unknown, otherwise: string): string {
  return error instanceof Error && "code" in error ? String(error.code) : otherwise;
}

/** Throws when `claim` is false: a bug in Moor, named by the invariant it breaks. */
export function invariant(claim: unknown, name: string): asserts claim {
  if (!claim) throw new Error(`invariant broken: ${name}`);
}
