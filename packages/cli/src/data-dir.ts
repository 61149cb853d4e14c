// Where a node keeps its data when nobody says where: the platform's folder for state.

import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** `$XDG_STATE_HOME/moor`, else `~/.local/state/moor`; on macOS `~/Library/Application Support/moor`. */
export function defaultDataDir(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = homedir(),
): string {
  if (platform === "darwin") return join(home, "Library", "Application Support", "moor");
  const state = env["XDG_STATE_HOME"];
  // The XDG specification: a relative path is to be ignored.
  return state !== undefined && isAbsolute(state)
    ? join(state, "moor")
    : join(home, ".local", "state", "moor");
}
