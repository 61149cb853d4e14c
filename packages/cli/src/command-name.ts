// How the reader of a hint calls this program: `moor`, or `npx moor` where npm runs it.

/** The words to put before a noun and a verb. */
export function commandName(env: NodeJS.ProcessEnv = process.env): string {
  return env["npm_command"] === "exec" ? "npx moor" : "moor";
}
