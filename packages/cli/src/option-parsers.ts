// Values of options, read and refused the same way everywhere: what was got, what is expected, exit code 2.

import { parseResponseTimeout, parseTunnelId, type TunnelId } from "@moor/protocol";
import { ConfigError } from "@moor/runtime";

/** A reader of an integer option between `min` and `max`. */
export function integerOption(option: string, min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new ConfigError(option, JSON.stringify(text), `an integer from ${min} to ${max}`);
  };
}

/** A duration such as `55s`, given back as written. */
export function durationOption(option: string): (text: string) => string {
  return (text) => {
    if (parseResponseTimeout(text) !== undefined) return text;
    throw new ConfigError(option, JSON.stringify(text), "a duration such as 55s, 1500ms or 2m");
  };
}

/** A tunnel id. What was got is not repeated: a key pasted in its place would be. */
export function tunnelIdOption(option: string): (text: string) => TunnelId {
  return (text) => {
    const id = parseTunnelId(text);
    if (id !== undefined) return id;
    throw new ConfigError(
      option,
      `a text of ${text.length} characters`,
      "tunnel_ and 32 characters of a-z, 0-9",
    );
  };
}

/** A key id. Not repeated either. */
export function keyIdOption(option: string): (text: string) => string {
  return (text) => {
    if (/^key_[0-9a-f]{24}$/.test(text)) return text;
    const expected = "key_ and 24 hexadecimal digits, as `moor key list` shows it";
    throw new ConfigError(option, `a text of ${text.length} characters`, expected);
  };
}
