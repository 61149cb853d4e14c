// The page of an app, built for browsers and served on loopback with the settings it links with.
//
// I1  Settings hold a token: they are served to this machine only, never cached, and stand in no URL.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "vite";

/** A page that is served. */
export interface AppPage {
  readonly url: string;
  close(): Promise<void>;
}

interface Built {
  readonly type: string;
  readonly body: string | Uint8Array;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
};

/** Nothing of other origins but the links themselves. */
const CONTENT_POLICY = "default-src 'self'; img-src data:; connect-src 'self' https: wss:";

/** Builds and serves the page. `settings` become its `settings.json`. */
export async function serveAppPage(settings: object): Promise<AppPage> {
  const files = await buildPage();
  files.set("/settings.json", { type: TYPES["json"] ?? "", body: JSON.stringify(settings) });
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://page");
    const file = files.get(pathname === "/" ? "/index.html" : pathname);
    if (file === undefined) return response.writeHead(404).end();
    response.writeHead(200, {
      "Content-Type": file.type,
      "Content-Security-Policy": CONTENT_POLICY,
      "Cache-Control": "no-store",
    });
    return response.end(file.body);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function buildPage(): Promise<Map<string, Built>> {
  const output = await build({
    root: fileURLToPath(new URL("app-page", import.meta.url)),
    base: "./",
    configFile: false,
    logLevel: "silent",
    build: { write: false, modulePreload: false, target: "es2022" },
  });
  const files = new Map<string, Built>();
  for (const { output: parts } of [output].flat() as { output: BuiltPart[] }[]) {
    for (const part of parts) {
      const type = TYPES[part.fileName.split(".").at(-1) ?? ""] ?? "application/octet-stream";
      files.set(`/${part.fileName}`, { type, body: part.type === "chunk" ? part.code : part.source });
    }
  }
  return files;
}

type BuiltPart =
  | { readonly type: "chunk"; readonly fileName: string; readonly code: string }
  | { readonly type: "asset"; readonly fileName: string; readonly source: string | Uint8Array };
