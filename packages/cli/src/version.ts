// This program's version.

import { readFileSync } from "node:fs";

/** The version of the package, e.g. `0.1.0`. */
export function readVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly version: string }).version;
}
