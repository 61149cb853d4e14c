// Builds entries for browsers as an app's author would: with Vite, from `@moor/client/app`.

import { fileURLToPath } from "node:url";
import { build, type Rolldown } from "vite";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** An entry built for browsers. */
export interface BrowserBundle {
  /** One ES module. */
  readonly code: string;
  /** Every module that went into it, as paths in the repository. */
  readonly modules: readonly string[];
}

/** Builds one entry, a path in the repository. Rejects when a module cannot be resolved for browsers. */
export async function bundleForBrowsers(entry: string): Promise<BrowserBundle> {
  const output = await build({
    root,
    configFile: false,
    logLevel: "silent",
    build: {
      write: false,
      target: "es2022",
      lib: { entry: `${root}${entry}`, formats: ["es"], fileName: "bundle" },
      rollupOptions: { external: /^node:/ },
    },
  });
  const [bundle] = [output].flat() as Rolldown.RolldownOutput[];
  const chunks = (bundle?.output ?? []).flatMap((part) => (part.type === "chunk" ? [part] : []));
  return {
    code: chunks.map(({ code }) => code).join("\n"),
    modules: chunks.flatMap(({ moduleIds }) => moduleIds).map((id) => id.replace(root, "")),
  };
}
