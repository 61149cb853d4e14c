// Values of options, read and refused the same way everywhere: what was got, what is expected, exit code 2.

import { parseHomeId, parseResponseTimeout, parseTunnelId, type HomeId, type TunnelId } from "@moor/protocol";
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

/** A home's name. Not repeated: a token pasted in its place would be. */
export function homeIdOption(option: string): (text: string) => HomeId {
  return (text) => {
    const id = text.startsWith("tunnel_") ? undefined : parseHomeId(text);
    if (id !== undefined) return id;
    throw new ConfigError(
      option,
      `a text of ${text.length} characters`,
      "1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit, and not with tunnel_",
    );
  };
}

/** What lives on a shard: a tunnel or a home. */
export function tenantIdOption(option: string): (text: string) => TunnelId | HomeId {
  return (text) => {
    const id = parseTunnelId(text) ?? (text.startsWith("tunnel_") ? undefined : parseHomeId(text));
    if (id !== undefined) return id;
    const expected = "tunnel_ and 32 characters of a-z, 0-9, or the name of a home";
    throw new ConfigError(option, `a text of ${text.length} characters`, expected);
  };
}

/** A tunnel of a home's own: one that there is, or `new`. */
export function ownTunnelOption(option: string): (text: string) => string {
  return (text) => (text === "new" ? text : tunnelIdOption(option)(text));
}

/** A service key's id. */
export function serviceKeyIdOption(option: string): (text: string) => string {
  return nameOption(
    option,
    /^[0-9A-Za-z_][0-9A-Za-z_-]{15}$/,
    "16 characters, as `moor service-key list` shows it",
  );
}

/** A name that is no secret: repeated as it was got. */
function nameOption(option: string, pattern: RegExp, expected: string): (text: string) => string {
  return (text) => {
    if (pattern.test(text)) return text;
    throw new ConfigError(option, JSON.stringify(text), expected);
  };
}

/** A shard's name. */
export function shardIdOption(option: string): (text: string) => string {
  return nameOption(option, /^[a-z0-9][a-z0-9-]{0,62}$/, "a shard, as `moor shards` shows it");
}

/** A job id. */
export function jobIdOption(option: string): (text: string) => string {
  return nameOption(option, /^job_[0-9a-f]{24}$/, "job_ and 24 hexadecimal digits, as `moor move` shows it");
}

/** A move id. */
export function moveIdOption(option: string): (text: string) => string {
  return nameOption(
    option,
    /^move_[0-9a-f]{32}$/,
    "move_ and 32 hexadecimal digits, as `moor moves` shows it",
  );
}

/** A token key's id. */
export function tokenKeyIdOption(option: string): (text: string) => string {
  return nameOption(
    option,
    /^tk_[0-9a-f]{8,32}$/,
    "tk_ and hexadecimal digits, as `moor token-key list` shows it",
  );
}

/** Moves a second: `50/s`, `0.5/s`, or the number alone. 0.01–10 000. */
export function rateOption(option: string): (text: string) => number {
  return (text) => {
    const match = /^([0-9]{1,5}(?:\.[0-9]{1,3})?)(?:\/s)?$/.exec(text);
    const rate = Number(match?.[1]);
    if (rate >= 0.01 && rate <= 10_000) return rate;
    throw new ConfigError(option, JSON.stringify(text), "moves a second from 0.01/s to 10000/s, e.g. 50/s");
  };
}

/** A key id, as `shownBy` shows it. Not repeated either. */
export function keyIdOption(option: string, shownBy = "moor key list"): (text: string) => string {
  return (text) => {
    if (/^key_[0-9a-f]{24}$/.test(text)) return text;
    const expected = `key_ and 24 hexadecimal digits, as \`${shownBy}\` shows it`;
    throw new ConfigError(option, `a text of ${text.length} characters`, expected);
  };
}
