import { spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { claimPort, isPortTaken } from "../src/ports.ts";

afterEach(() => vi.restoreAllMocks());

/** Random numbers that lead to port 20000, and then on one by one. */
function drawFromFirst(): void {
  let drawn = 0;
  vi.spyOn(Math, "random").mockImplementation(() => (drawn++ + 0.5) / 12_768);
}

test("a claimed port is claimed once, though nobody listens at it", async () => {
  drawFromFirst();
  const first = await claimPort();
  drawFromFirst();
  expect(await claimPort()).toBeGreaterThan(first);
  expect(await isPortTaken(first)).toBe(false);
});

test("another process passes it by", async () => {
  const script = `
    let drawn = 0;
    Math.random = () => (drawn++ + 0.5) / 12_768;
    const { claimPort } = await import(${JSON.stringify(fileURLToPath(new URL("../src/ports.ts", import.meta.url)))});
    console.log(await claimPort());
  `;
  drawFromFirst();
  const mine = await claimPort();
  const other = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(Number(other.stdout), other.stderr).toBeGreaterThan(mine);
});

test("a port at which somebody listens is passed by", async () => {
  drawFromFirst();
  const port = (await claimPort()) + 1;
  const holder = createServer();
  // An error means that somebody does already.
  await new Promise<unknown>((resolve) => {
    holder.once("error", resolve).listen(port, "127.0.0.1", () => resolve(undefined));
  });
  drawFromFirst();
  expect(await claimPort()).toBeGreaterThan(port);
  holder.close();
});
