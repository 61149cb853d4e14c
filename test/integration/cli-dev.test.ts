// `moor dev` as a process: what it prints, how it ends, what it refuses, what survives a kill.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import {
  createTempDir,
  createTunnel,
  isPortTaken,
  runMoor,
  startMoor,
  startMoorDev,
  type TempDir,
} from "@moor/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { postTunnel } from "./cli-kit.ts";

let temp: TempDir;
beforeEach(async () => {
  temp = await createTempDir("cli-dev");
});
afterEach(() => temp.remove());

test("with --json it prints one ready line, serves, and on SIGTERM ends with 0 and frees its ports", async () => {
  const dev = await startMoorDev({ dataDir: join(temp.path, "made") });
  const { endpoint, operatorUrl, dataDir } = dev;
  const ready: unknown = JSON.parse(dev.process.stdout.lines[0] ?? "");
  expect(ready).toEqual({ event: "ready", endpoint, operator: operatorUrl, data: dataDir });
  for (const url of [endpoint, operatorUrl]) {
    expect(new URL(url).hostname).toBe("127.0.0.1");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  }
  expect(await dev.process.stop()).toEqual({ kind: "exited", code: 0 });
  await dev.process.expectGroupEmpty();
  expect(dev.process.stdout.lines).toHaveLength(1);
  for (const url of [endpoint, operatorUrl]) expect(await isPortTaken(Number(new URL(url).port))).toBe(false);
});

test("without --json it says in words where it is and what to do next, and SIGINT ends it with 0", async () => {
  const moor = await startMoor(["dev", "--port=0", "--operator-port=0", `--data=${temp.path}`]);
  await moor.stdout.waitFor("Stop with Ctrl-C.");
  expect(moor.stdout.text()).toMatch(/^Moor serves at http:\/\/127\.0\.0\.1:\d+$/m);
  expect(moor.stdout.text()).toContain(`moor tunnel create --data ${temp.path}`);
  moor.signal("SIGINT");
  expect(await moor.ended).toEqual({ kind: "exited", code: 0 });
});

test("operator.json is the owner's only; its token is kept over a restart, its URL is the new one", async () => {
  const path = join(temp.path, "operator.json");
  const first = await startMoorDev({ dataDir: temp.path });
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
    url: first.operatorUrl,
    token: first.operatorToken,
  });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await first.stop();
  const second = await startMoorDev({ dataDir: temp.path });
  expect(second.operatorToken).toBe(first.operatorToken);
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ url: second.operatorUrl });
  await second.stop();
});

test.each(["--port", "--operator-port"])("a busy port is named by %s, with exit code 2", async (flag) => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", () => resolve()));
  const { port } = holder.address() as AddressInfo;
  const other = flag === "--port" ? "--operator-port" : "--port";
  const run = await runMoor(["dev", `${flag}=${port}`, `${other}=0`, `--data=${temp.path}`]);
  expect([run.code, run.stdout]).toEqual([2, ""]);
  expect(run.stderr).toContain(`${flag}: got 127.0.0.1:${port} (EADDRINUSE)`);
  holder.close();
  // The failed start let go of the data directory.
  await (await startMoorDev({ dataDir: temp.path })).stop();
});

test("a data directory that cannot be made is refused with exit code 2, whatever is in its way", async () => {
  const file = join(temp.path, "file");
  writeFileSync(file, "");
  const impossible = [
    file,
    join(file, "below"),
    ...(process.platform === "linux" ? ["/proc/moor/data"] : []),
  ];
  for (const dir of impossible) {
    const run = await runMoor(["dev", "--port=0", "--operator-port=0", `--data=${dir}`]);
    expect([run.code, run.stdout]).toEqual([2, ""]);
    expect(run.stderr).toContain(`--data: got ${dir} (`);
  }
  const dev = await startMoorDev({ dataDir: join(temp.path, "two", "levels") });
  expect(statSync(join(temp.path, "two")).mode & 0o777).toBe(0o700);
  await dev.stop();
});

test("a second node on the same data directory is refused with 2, and the first serves on", async () => {
  const dev = await startMoorDev({ dataDir: temp.path });
  const second = await runMoor(["dev", "--port=0", "--operator-port=0", `--data=${temp.path}`]);
  expect([second.code, second.stdout]).toEqual([2, ""]);
  expect(second.stderr).toContain(`--data: got ${temp.path}, which another moor process is using`);
  expect((await fetch(`${dev.endpoint}/readyz`)).status).toBe(200);
  await dev.stop();
});

test("what was created is there after kill -9, and the directory is free at once", async () => {
  const first = await startMoorDev({ dataDir: temp.path });
  const tunnel = await createTunnel(first, ["--name", "survivor"]);
  await first.kill();
  const second = await startMoorDev({ dataDir: temp.path });
  const metadata = await fetch(`${second.endpoint}/v1/tunnels/${tunnel.id}`, {
    headers: { Authorization: `Bearer ${tunnel.agentKey}` },
  });
  expect(metadata.status).toBe(200);
  expect(await metadata.json()).toMatchObject({ id: tunnel.id, name: "survivor" });
  await second.stop();
});

test("fewer shards after a restart leave no tunnel without a live one", async () => {
  const first = await startMoorDev({ dataDir: temp.path, args: ["--shards", "4"] });
  const ids = await Promise.all(Array.from({ length: 12 }, () => postTunnel(first)));
  await first.stop();
  const second = await startMoorDev({ dataDir: temp.path, args: ["--shards", "1"] });
  const list = await runMoor(["tunnel", "list", "--json", "--data", temp.path]);
  const { items } = JSON.parse(list.stdout) as { items: { id: string; shard: string }[] };
  expect(items.map((item) => item.id).toSorted()).toEqual(ids.toSorted());
  expect(new Set(items.map((item) => item.shard)).size).toBe(1);
  await second.stop();
});
