// The PostgreSQL server of the tests: it starts whoever runs it, fails on order, and leaves nothing.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isPortTaken, postgresMissing, startPostgres, startProcess, until } from "@moor/testkit";

/** Folders that a process made for its servers. */
function folders(owner: number): string[] {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith("moor-postgres-"));
  return names.map((name) => join(tmpdir(), name)).filter((dir) => readOwner(dir) === owner);
}

function readOwner(dir: string): number {
  try {
    return Number(readFileSync(join(dir, "owner.pid"), "utf8"));
  } catch {
    return 0;
  }
}

test.skipIf(postgresMissing() !== undefined)(
  "a server that a killed process left is stopped by the next start",
  async () => {
    const program = `
      import { startPostgres } from ${JSON.stringify(import.meta.resolve("@moor/testkit/postgres"))};
      const server = await startPostgres();
      console.log(server.port);
      setInterval(() => {}, 1000);`;
    const process = await startProcess({
      args: ["--input-type=module", "--eval", program],
      label: "starter",
    });
    const port = Number(await process.stdout.waitFor(/^\d+$/, 60_000));
    const abandoned = folders(process.pid);
    expect(abandoned).toHaveLength(2);
    process.signal("SIGKILL");
    await process.ended;
    expect(await isPortTaken(port)).toBe(true);
    const server = await startPostgres();
    expect(await server.createDatabase("usable")).toContain(`:${server.port}/usable`);
    await until(async () => !(await isPortTaken(port)), "the abandoned server to be gone");
    expect(abandoned.filter((dir) => existsSync(dir))).toEqual([]);
    await server.remove();
    expect(folders(globalThis.process.pid)).toEqual([]);
  },
  90_000,
);
