// Why a configuration cannot be used, as a ConfigError: which setting, what it was, what it may be.
//
// I1  A setting is named as its giver wrote it: `FILE: public.port`, MOOR_PUBLIC_PORT or --public-port.
// I2  What stands under `directory` is never repeated: a database URL typed in the wrong place holds a password.

import { ConfigError } from "@moor/runtime";
import type { z } from "zod";
import { valueAt, type Draft, type Overrides } from "./config-overrides.ts";
import { keysAt } from "./config-schema.ts";

/** Longest value repeated in a message, characters. */
const GOT_CHARS_MAX = 100;

/** What was judged. */
export interface Judged {
  /** The file's path as it was given. */
  readonly file: string;
  readonly draft: Draft;
  readonly overrides: Overrides;
}

/** The first thing that is wrong; an unknown key first, since a misspelt one also leaves the right one missing. */
export function configRefusal(issues: readonly z.core.$ZodIssue[], judged: Judged): ConfigError {
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  if (issue === undefined) return new ConfigError(judged.file, "an unusable file", "a configuration");
  if (issue.code === "unrecognized_keys") {
    const at = [...issue.path, issue.keys[0] ?? ""];
    const known = keysAt(issue.path)?.filter((key) => key !== "$schema") ?? [];
    return new ConfigError(nameOf(at, judged), "an unknown key", `one of ${known.join(", ")}`);
  }
  return new ConfigError(nameOf(issue.path, judged), gotAt(issue.path, judged.draft), issue.message);
}

/** The setting as its giver wrote it; that of an item of a list is its list's. */
function nameOf(at: readonly PropertyKey[], { file, overrides }: Judged): string {
  for (let length = at.length; length > 0; length -= 1) {
    const name = overrides.get(at.slice(0, length).map(String).join("."));
    if (name !== undefined) return name;
  }
  return at.length === 0 ? file : `${file}: ${at.map(String).join(".")}`;
}

function gotAt(at: readonly PropertyKey[], draft: Draft): string {
  const value = valueAt(draft, at);
  if (value === undefined) return "nothing";
  if (at[0] === "directory") return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
  const got = JSON.stringify(value);
  return got.length <= GOT_CHARS_MAX ? got : `${got.slice(0, GOT_CHARS_MAX)}…`;
}
