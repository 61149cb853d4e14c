// Text that must never be printed: keys, tokens, passwords.
//
// I1  Every way a value usually leaks (template strings, JSON, util.inspect, log fields) gives "[secret]".
// I2  The text comes out only through `reveal`, so that a reader can search for every place it does.

const inspect = Symbol.for("nodejs.util.inspect.custom");

/** Wraps a text that may be sent to a peer or compared, and never shown. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself: for an HTTP header, a hash or a file with mode 0600. Nothing else. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  [inspect](): string {
    return "[secret]";
  }
}
