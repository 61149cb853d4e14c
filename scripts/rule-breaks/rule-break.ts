// A deliberate fault in the pure machines, as a patch of one source file of packages/protocol.

/** A fault: `find` occurs exactly once in `file` and becomes `replace`. */
export interface RuleBreak {
  /** Requirement of docs/protocol that no longer holds. */
  readonly rule: string;
  /** What is wrong then. */
  readonly name: string;
  /** File below packages/protocol/src. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** Breaks of one file: `inFile("x.ts")(rule, name, find, replace)`. */
export function inFile(
  file: string,
): (rule: string, name: string, find: string, replace: string) => RuleBreak {
  return (rule, name, find, replace) => ({ rule, name, file, find, replace });
}
