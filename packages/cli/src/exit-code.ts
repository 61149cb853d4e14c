// How a moor command ends, and the endings that are neither success nor a wrong setting (ConfigError).

/** 0 done · 1 the service refused · 2 wrong usage or configuration · 3 cannot reach the service · 4 a command's outcome is
 *  unknown. */
export const EXIT_CODE = { done: 0, refused: 1, usage: 2, unreachable: 3, unknown: 4 } as const;

/** The service understood and said no. Exit code 1. */
export class RefusedError extends Error {
  /** A code of docs/protocol/errors.md. */
  readonly code: string;
  /** What the refusal says besides, by code. */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = "RefusedError";
    this.code = code;
    this.data = data;
  }
}

/** Nobody answered. Exit code 3. */
export class UnreachableError extends Error {
  /** @param whatToCheck what the reader can do about it, as a sentence */
  constructor(message: string, whatToCheck: string) {
    super(`${message}\n${whatToCheck}`);
    this.name = "UnreachableError";
  }
}

/** A command was sent, and what came of it is not known. Exit code 4. */
export class UnknownOutcomeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnknownOutcomeError";
  }
}
