// `@moor/client/app` as a bundler sees it: nothing of Node, and small.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { bundleForBrowsers } from "./app-bundle.ts";

const ENTRY = "packages/client/src/app.ts";
/** What the whole client may weigh, compressed. Bytes. */
const GZIP_BYTES_MAX = 32 * 1024;

test("no module of the bundle is or names one of Node, and all are of packages that run in browsers", async () => {
  const { code, modules } = await bundleForBrowsers(ENTRY);
  expect(code).not.toMatch(/\bnode:|\brequire\(|\bprocess\.|\bBuffer\b/);
  expect(modules.length).toBeGreaterThan(20);
  const allowed = /^(packages\/(client|protocol|runtime)\/src|node_modules\/@noble\/(ed25519|hashes))\//;
  expect(modules.filter((id) => !allowed.test(id))).toEqual([]);
  for (const id of modules.filter((name) => name.startsWith("packages/"))) {
    const source = readFileSync(fileURLToPath(new URL(`../../${id}`, import.meta.url)), "utf8");
    expect(source, id).not.toMatch(/from "node:/);
  }
});

test(`the bundle is under ${GZIP_BYTES_MAX} bytes compressed`, async () => {
  const { code } = await bundleForBrowsers(ENTRY);
  const bytes = gzipSync(code).length;
  console.log(`@moor/client/app: ${code.length} bytes, ${bytes} compressed`);
  expect(bytes).toBeLessThan(GZIP_BYTES_MAX);
});
