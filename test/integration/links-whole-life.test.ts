// A home's whole life with the real programs: created, enrolled, linked, commanded, told of, moved; and its node, box and
// app killed in the middle.

import { readFile, writeFile } from "node:fs/promises";
import { createHousehold, type Household } from "@moor/testkit/household";
import {
  claimPort,
  openOperator,
  startMoorDev,
  until,
  verifies,
  within,
  type MoorDev,
  type RunningProcess,
} from "@moor/testkit";
import { expect, onTestFinished } from "vitest";

interface Stage {
  dev: MoorDev;
  readonly house: Household;
  /** Kills the node as a power cut does, and starts it again where it was. */
  restartNode(): Promise<void>;
}

async function setStage(): Promise<Stage> {
  const port = await claimPort();
  const first = await startMoorDev({ port });
  const house = await createHousehold(first);
  const stage: Stage = {
    dev: first,
    house,
    restartNode: async () => {
      await stage.dev.kill();
      stage.dev = await startMoorDev({ port, dataDir: first.dataDir });
    },
  };
  onTestFinished(async () => {
    await stage.dev.kill();
    await first.stop();
    await house.remove();
  });
  return stage;
}

/** A box that notes each command it acts on, and answers with its id. Commands named `slow…` wait for `go` first. */
async function startBox(house: Household, args: readonly string[] = []): Promise<RunningProcess> {
  const wait = `case $MOOR_COMMAND_ID in slow*) while [ ! -e ${house.at("go")} ]; do sleep 0.05; done;; esac`;
  const act = `echo $MOOR_COMMAND_ID >> ${house.at("acted")}; ${wait}; echo "{\\"did\\":\\"$MOOR_COMMAND_ID\\"}"`;
  const box = await house.startBox(["--exec", `exec 2>&-; ${act}`, ...args], { hasInput: true });
  onTestFinished(async () => void (await box.kill()));
  return box;
}

async function actedOn(house: Household): Promise<string[]> {
  const text = await readFile(house.at("acted"), "utf8").catch(() => "");
  return text.split("\n").filter(Boolean);
}

async function untilActed(house: Household, id: string): Promise<void> {
  await until(async () => (await actedOn(house)).includes(id), `the box to act on ${id}`);
}

/** Allows `slow` commands to end. */
async function letGo(house: Household): Promise<void> {
  await writeFile(house.at("go"), "");
}

async function startWatch(house: Household): Promise<RunningProcess> {
  const watch = await house.startApp("watch");
  onTestFinished(async () => void (await watch.kill()));
  await watch.stdout.waitFor('"state":"online"');
  return watch;
}

verifies(
  ["L20", "L28", "L30", "L31", "L33", "L34"],
  "a home is created, enrolled, linked, commanded and watched by the programs alone",
  async () => {
    const { house, dev } = await setStage();
    const watch = await startWatch(house);
    await watch.stdout.waitFor(/"presence":"(offline|unknown)"/);
    const box = await startBox(house, ["--feed", "-"]);
    await watch.stdout.waitFor('"presence":"online"');
    box.stdin.write('{"now":{"t": 21.50}}\n{"event":{"door":"open"}}\n');
    await watch.stdout.waitFor('{"event":{"door":"open"}}');
    await until(async () => (await house.runNow()).stdout === '{"t": 21.50}', "the snapshot to be told");
    const sent = await house.runApp("--id", "c1", "send", '{"heat":21}');
    expect([sent.code, sent.stdout]).toEqual([0, '{"did":"c1"}']);
    const once = await house.runApp("--id", "c2", "once", "1");
    expect([once.code, once.stdout]).toEqual([0, '{"did":"c2"}']);
    const again = await house.runApp("--id", "c1", "once", "1");
    expect([again.code, again.stdout]).toEqual([0, '{"did":"c1"}']);
    expect(await actedOn(house)).toEqual(["c1", "c2"]);
    const operator = await openOperator(dev.dataDir);
    expect(await operator.demand("GET", `/v1/homes/${house.home}`)).toMatchObject({
      box: { enrolled: true },
      live: { presence: "online", apps: [{ app: "moor-cli" }], duplicate_identity: null },
    });
    expect(await box.stop()).toEqual({ kind: "exited", code: 0 });
    await watch.stdout.waitFor('"presence":"offline"');
    expect((await house.runApp("send", "1")).code).toBe(1);
    expect((await house.runApp("once", "1")).code).toBe(1);
    expect(await actedOn(house)).toEqual(["c1", "c2"]);
  },
  120_000,
);

verifies(
  ["L11", "L12", "L21", "L22"],
  "a move takes box and app along while a command is acted on, and the box dials its new shard first from then on",
  async () => {
    const { house, dev } = await setStage();
    const box = await startBox(house);
    const watch = await startWatch(house);
    const slow = house.startApp("--id", "slow1", "send", "1").then((app) => app.ended);
    await untilActed(house, "slow1");
    const operator = await openOperator(dev.dataDir);
    const move = async () => (await operator.move(house.home, "s2")).status === 200;
    await until(move, "box and app to be known to follow", 60_000);
    // What the app had in flight is unknown to it; the box goes on, and whoever asks again gets its result.
    expect(await within(slow, "the app to be told")).toEqual({ kind: "exited", code: 4 });
    await letGo(house);
    await Promise.all([
      box.stderr.waitFor('"host":"s2.moor.localhost"'),
      watch.stdout.waitFor('{"state":"online","host":"s2.moor.localhost"}'),
    ]);
    const again = await house.runApp("--id", "slow1", "once", "1");
    expect([again.code, again.stdout]).toEqual([0, '{"did":"slow1"}']);
    expect(await actedOn(house)).toEqual(["slow1"]);
    expect(JSON.parse(await readFile(house.at("box.json"), "utf8"))).toEqual({
      v: 1,
      home: house.home,
      host: "s2.moor.localhost",
    });
    await box.stop();
    const next = await startBox(house);
    expect(next.stderr.lines.filter((line) => line.includes('"link-online"'))).toEqual([
      expect.stringContaining('"host":"s2.moor.localhost"'),
    ]);
  },
  120_000,
);

verifies(
  ["L15", "L20"],
  "a killed node costs nobody anything but time: box and app come back, and a result that only the box knows is told",
  async () => {
    const stage = await setStage();
    const { house } = stage;
    const box = await startBox(house);
    const watch = await startWatch(house);
    expect((await house.runApp("--id", "c1", "send", "1")).stdout).toBe('{"did":"c1"}');
    const slow = house.startApp("--id", "slow1", "send", "1").then((app) => app.ended);
    await untilActed(house, "slow1");
    await stage.restartNode();
    expect(await within(slow, "the app to be told")).toEqual({ kind: "exited", code: 4 });
    await letGo(house);
    await until(() => count(box.stderr.text(), '"link-online"') === 2, "the box to be back");
    await until(() => count(watch.stdout.text(), '"state":"online"') === 2, "the app to be back");
    for (const id of ["c1", "slow1"]) {
      const again = await house.runApp("--id", id, "once", "1");
      expect([again.code, again.stdout]).toEqual([0, `{"did":"${id}"}`]);
    }
    expect(await actedOn(house)).toEqual(["c1", "slow1"]);
  },
  120_000,
);

verifies(
  ["L20", "L31"],
  "a box that is killed while it acts does not act again; an app that is killed leaves its command to whoever asks",
  async () => {
    const { house } = await setStage();
    const box = await startBox(house);
    const slow = house.startApp("--id", "slow1", "send", "1").then((app) => app.ended);
    await untilActed(house, "slow1");
    await box.kill();
    expect(await within(slow, "the app to be told")).toEqual({ kind: "exited", code: 4 });
    await startBox(house);
    await letGo(house);
    expect((await house.runApp("--id", "slow1", "once", "1")).code).toBe(4);
    expect(await actedOn(house)).toEqual(["slow1"]);

    const leaving = await house.startApp("--id", "c2", "send", "1");
    await untilActed(house, "c2");
    await leaving.kill();
    const asked = await house.runApp("--id", "c2", "send", "1");
    expect([asked.code, asked.stdout]).toEqual([0, '{"did":"c2"}']);
    expect(await actedOn(house)).toEqual(["slow1", "c2"]);
  },
  120_000,
);

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}
