import { expect, test } from "vitest";
import { listProcessGroup, startProcess } from "@moor/testkit";

const STAYS = "process.stdout.write('up\\n'); setInterval(() => {}, 1000)";
const SPAWNS_A_CHILD = `
  import { spawn } from "node:child_process";
  spawn(process.execPath, ["-e", ${JSON.stringify(STAYS)}], { stdio: "inherit" });
  process.on("SIGTERM", () => process.exit(7));
`;

test("a process's lines are found whether they came before or after the wait", async () => {
  const node = await startProcess({ args: ["-e", STAYS], label: "stays" });
  await node.stdout.waitFor("up");
  expect(await node.stdout.waitFor(/^up$/)).toBe("up");
  expect(await node.stop()).toEqual({ kind: "killed", signal: "SIGTERM" });
  await node.expectGroupEmpty();
});

test("a wait for a line that never comes ends with the stream and shows what did come", async () => {
  const node = await startProcess({ args: ["-e", "console.error('only this')"], label: "brief" });
  await expect(node.stderr.waitFor("something else")).rejects.toThrow(/ended without .*\n?.*only this/s);
});

test("a child left behind is seen in the group, and kill takes the whole group", async () => {
  const node = await startProcess({ args: ["--input-type=module", "-e", SPAWNS_A_CHILD] });
  await node.stdout.waitFor("up");
  expect(await node.members()).toHaveLength(2);
  node.signal("SIGKILL");
  await expect(node.expectGroupEmpty(100)).rejects.toThrow(/still has: \d+/);
  await node.kill();
  await node.expectGroupEmpty();
  expect(await listProcessGroup(node.pid)).toEqual([]);
});
