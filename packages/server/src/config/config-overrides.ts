// Lays the environment and flags over what the file says, and remembers where each value came from.
//
// I1  Nothing is validated here: an override goes where the file's value would stand, and the schema judges both alike.

import { resolve } from "node:path";
import { DATABASE_URL_VARIABLE, SETTINGS, type Setting } from "./config-settings.ts";

/** A JSON object while it is put together. */
export type Draft = Record<string, unknown>;

/** Which variable or flag gave a setting; key: its dotted path. Settings of the file are not in it. */
export type Overrides = ReadonlyMap<string, string>;

/** Where overrides come from. */
export interface OverrideSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Values of flags, by flag name, e.g. `--public-port`. */
  readonly flags: ReadonlyMap<string, string>;
  /** Folder that relative paths of variables and flags start from. */
  readonly workingDir: string;
}

/** Changes `draft` by what the sources say; gives where that came from. Empty variables count as absent. */
export function applyOverrides(draft: Draft, sources: OverrideSources): Overrides {
  const overrides = new Map<string, string>();
  for (const setting of SETTINGS) {
    const flag = sources.flags.get(setting.flag);
    const text = flag ?? sources.env[setting.variable];
    if (!isGiven(text)) continue;
    // The directory is one or the other: the file's does not stay beside the override's.
    if (setting.at[0] === "directory") draft["directory"] = {};
    place(draft, setting.at, readOverride(setting, text, sources.workingDir));
    overrides.set(setting.at.join("."), flag === undefined ? setting.variable : setting.flag);
  }
  const isOverridden = [...overrides.keys()].some((key) => key.startsWith("directory."));
  const hasUrl = isGiven(sources.env[DATABASE_URL_VARIABLE]) && !isOverridden;
  if (hasUrl && draft["entryMode"] !== "bootstrap") {
    draft["directory"] = { postgres: { env: DATABASE_URL_VARIABLE } };
    overrides.set("directory", DATABASE_URL_VARIABLE);
  }
  return overrides;
}

/** Makes the relative paths of a file's settings start from its folder. */
export function resolveFilePaths(draft: Draft, folder: string): void {
  for (const { at, kind } of SETTINGS) {
    const value = kind === "path" ? valueAt(draft, at) : undefined;
    if (typeof value === "string" && value !== "") place(draft, at, resolve(folder, value));
  }
}

/** The value at a place of a JSON value; undefined when there is none. */
export function valueAt(root: unknown, at: readonly PropertyKey[]): unknown {
  let value = root;
  for (const key of at) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== "";
}

function readOverride({ kind }: Setting, text: string, workingDir: string): unknown {
  switch (kind) {
    case "text":
      return text;
    case "path":
      return resolve(workingDir, text);
    case "integer":
      // Anything else stays a text, which the schema refuses by name.
      return /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text;
    case "boolean":
      return text === "true" || text === "false" ? text === "true" : text;
    case "list":
      return itemsOf(text);
    case "peers":
      return itemsOf(text).map((item) => {
        const [id = "", ...url] = item.split("=");
        return { id, url: url.join("=") };
      });
  }
}

function itemsOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** Sets a value, making the objects on the way. A value on the way that is no object stays, for the schema to refuse. */
function place(draft: Draft, at: readonly string[], value: unknown): void {
  const [key, ...rest] = at;
  if (key === undefined) return;
  if (rest.length === 0) {
    draft[key] = value;
    return;
  }
  const inner = draft[key] ?? {};
  if (typeof inner !== "object" || Array.isArray(inner)) return;
  draft[key] = inner;
  place(inner as Draft, rest, value);
}
