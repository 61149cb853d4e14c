// `moor box`, `moor box enroll` and `moor app` as real processes: what they say, keep, print, and how they end.

import { createHash } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  createTempDir,
  expectGroupEmpty,
  runMoor,
  startMoor,
  until,
  verifies,
  type FakeLink,
  type FakeLinkService,
  type RunningProcess,
} from "@moor/testkit";
import { expect, onTestFinished, test } from "vitest";
import { HOME, startService, TOKEN } from "./link-kit.ts";

interface Stage {
  readonly service: FakeLinkService;
  readonly dir: string;
  /** A path in the test's own folder. */
  readonly at: (name: string) => string;
}

/** A service, and a folder with its authority, its key and an app token. */
async function setStage(): Promise<Stage> {
  const service = await startService();
  const folder = await createTempDir("link");
  onTestFinished(() => folder.remove());
  const at = (name: string) => path.join(folder.path, name);
  await writeFile(at("ca.pem"), service.certificates?.ca ?? "");
  await writeFile(at("service.keys"), `# of the service\n${service.key.publicKey}\n`);
  await writeFile(at("app.token"), `${TOKEN}\n`, { mode: 0o600 });
  return { service, dir: folder.path, at };
}

function boxArgs({ service, at }: Stage): string[] {
  const who = ["--endpoint", service.endpoint, "--home", HOME, "--identity", at("box.pem")];
  const files = ["--record", at("box.json"), "--service-key", at("service.keys"), "--ca-file", at("ca.pem")];
  return ["box", ...who, ...files];
}

async function startBoxProcess(stage: Stage, args: readonly string[] = []): Promise<RunningProcess> {
  const box = await startMoor([...boxArgs(stage), ...args]);
  onTestFinished(async () => {
    await box.kill();
  });
  return box;
}

/** A box that is online at the base host. */
async function startLinkedBox(stage: Stage, args: readonly string[] = []) {
  const box = await startBoxProcess(stage, args);
  const link = await welcomeNext(stage);
  await box.stderr.waitFor('"link-online"');
  return { box, link };
}

async function welcomeNext({ service }: Stage): Promise<FakeLink> {
  const link = (await service.dials.take()).upgrade();
  await link.welcome();
  return link;
}

function appArgs({ service, at }: Stage, ...args: readonly string[]): string[] {
  const who = ["--endpoint", service.endpoint, "--token-file", at("app.token")];
  return ["app", ...who, "--service-key", at("service.keys"), "--ca-file", at("ca.pem"), ...args];
}

/** Resolves when a file holds this text. */
async function untilText(file: string, text: string): Promise<void> {
  await until(async () => (await readFile(file, "utf8").catch(() => "")) === text, `${file} to be ${text}`);
}

function command(id: string, data: string, ttlMs = 30_000): string {
  return `{"t":"cmd","id":"${id}","ttl_ms":${ttlMs},"data":${data},"app":"phone-1"}`;
}

verifies("L28", "moor box makes its identity once, keeps it private, and proves it", async () => {
  const stage = await setStage();
  const { box, link } = await startLinkedBox(stage);
  const [, publicKey = ""] = /^public key (\S{43})$/m.exec(box.stdout.text()) ?? [];
  await untilText(stage.at("box.json"), `{"v":1,"home":"${HOME}"}\n`);
  expect((await stat(stage.at("box.pem"))).mode & 0o777).toBe(0o600);
  expect((await stat(stage.at("box.json"))).mode & 0o777).toBe(0o600);
  box.signal("SIGTERM");
  expect(await box.ended).toEqual({ kind: "exited", code: 0 });
  expect((await link.closed).code).toBe(1000);
  const again = await startBoxProcess(stage);
  expect(await (await stage.service.dials.take()).upgrade().challenge(publicKey)).toBe(true);
  expect(again.stdout.text()).toBe("");
});

verifies("L31", "without --exec the data comes back byte for byte", async () => {
  const { link } = await startLinkedBox(await setStage());
  await link.send(command("c1", '{"a" : 1.0,"b":9007199254740993}'));
  expect(await link.frames.take()).toEqual({ t: "result", id: "c1", data: { a: 1, b: 9007199254740992 } });
});

test("with --exec a program gets data, id, app and time, and its JSON is the result", async () => {
  const script = `read -r line; echo "{\\"got\\":$line,\\"id\\":\\"$MOOR_COMMAND_ID\\",\\"app\\":\\"$MOOR_APP\\"}"`;
  const { link } = await startLinkedBox(await setStage(), ["--exec", script]);
  await link.send(command("c1", '"warm"'));
  const result = { got: "warm", id: "c1", app: "phone-1" };
  expect(await link.frames.take()).toEqual({ t: "result", id: "c1", data: result });
});

verifies("L20", "a box that is killed while it acts does not act again, and says unknown", async () => {
  const stage = await setStage();
  const acted = stage.at("acted");
  // The second command hangs, and lets go of the box's stderr, which the test reads to its end.
  const script = `echo $MOOR_COMMAND_ID >> ${acted}; test $MOOR_COMMAND_ID = c1 || exec sleep 60 2>&-; echo 1`;
  const { box, link } = await startLinkedBox(stage, ["--exec", script]);
  await link.send(command("c1", "1"));
  expect(await link.frames.take()).toEqual({ t: "result", id: "c1", data: 1 });
  await link.send(command("c2", "1"));
  await untilText(acted, "c1\nc2\n");
  await box.kill();
  const { link: second } = await startLinkedBox(stage, ["--exec", script]);
  await second.send(command("c1", "1"));
  expect(await second.frames.take()).toEqual({ t: "result", id: "c1", data: 1 });
  await second.send(command("c2", "1"));
  expect(await second.frames.take()).toEqual({ t: "outcome", id: "c2", outcome: "unknown" });
  expect(await readFile(acted, "utf8")).toBe("c1\nc2\n");
});

test("--feed tells events and the snapshot, and skips what is neither", async () => {
  const stage = await setStage();
  await writeFile(stage.at("feed"), '{"now":{"t":21}}\nnonsense\n{"now":{"t":22}}\n');
  const { box, link } = await startLinkedBox(stage, ["--feed", stage.at("feed")]);
  await box.stderr.waitFor('"feed-line-skipped"');
  for (let frame = await link.frames.take(); ; frame = await link.frames.take()) {
    expect(frame).toMatchObject({ t: "now" });
    if (frame.t === "now" && JSON.stringify(frame.data) === '{"t":22}') break;
  }
});

verifies("L12", "a redirect is followed, kept, and dialled first by the next run", async () => {
  const stage = await setStage();
  const { link } = await startLinkedBox(stage);
  await link.close(4421, "a.moor.localhost");
  const dial = await stage.service.dials.take();
  expect(dial.host).toBe("a.moor.localhost");
  await dial.upgrade().welcome();
  await untilText(stage.at("box.json"), `{"v":1,"home":"${HOME}","host":"a.moor.localhost"}\n`);
});

test("a refusal is a log line with its code and a sentence for people; no secret is among them", async () => {
  const stage = await setStage();
  stage.service.setCertificate("moor.localhost", "expired");
  const box = await startBoxProcess(stage);
  const line = await box.stderr.waitFor('"link-down"');
  expect(JSON.parse(line)).toMatchObject({ level: "warn", why: "tls-expired", host: "moor.localhost" });
  await box.stderr.waitFor(/certificate has expired.*clock.*It says \d{4}-/);
  expect(box.stderr.text()).not.toContain("PRIVATE");
});

test("moor app send prints the result, and ends by what came of it", async () => {
  const stage = await setStage();
  const send = async (answer: (link: FakeLink, id: string) => Promise<void>) => {
    const run = runMoor(appArgs(stage, "send", '{"heat":21}'));
    const link = await welcomeNext(stage);
    const { id, data } = await link.expect("cmd");
    expect(data).toEqual({ heat: 21 });
    await answer(link, id);
    const { code, stdout, stderr } = await run;
    return { code, stdout, stderr, id };
  };
  const done = await send((link, id) => link.send(`{"t":"result","id":"${id}","data":{"ok" : 1.0}}`));
  expect([done.code, done.stdout]).toEqual([0, '{"ok" : 1.0}']);
  for (const outcome of ["not_delivered", "expired"]) {
    const ending = await send((link, id) => link.send(`{"t":"outcome","id":"${id}","outcome":"${outcome}"}`));
    expect([ending.code, ending.stdout]).toEqual([1, ""]);
  }
  const unknown = await send((link, id) => link.send(`{"t":"outcome","id":"${id}","outcome":"unknown"}`));
  expect(unknown.code).toBe(4);
  expect(unknown.stderr).toContain(`--id ${unknown.id}`);
  const lost = await send((link) => link.close(4503, "1000"));
  expect(lost.code).toBe(4);
  const refused = runMoor(appArgs(stage, "send", "1"));
  const link = (await stage.service.dials.take()).upgrade();
  await link.hello();
  await link.close(4401);
  expect((await refused).code).toBe(1);
  await stage.service.refuse();
  const away = await runMoor(appArgs(stage, "--wait-ms", "500", "send", "1"));
  expect([away.code, away.stderr]).toEqual([3, expect.stringContaining("Nothing listens")]);
});

test("moor app once and now print what they get, and tell unreachable from refused", async () => {
  const stage = await setStage();
  const { service } = stage;
  const once = runMoor(appArgs(stage, "--id", "c1", "once", '{"heat":21}'));
  const request = await service.requests.take();
  expect([request.path, request.body]).toEqual([
    "/v1/app/once",
    '{"id":"c1","ttl_ms":30000,"data":{"heat":21}}',
  ]);
  expect(request.headers.authorization).toBe(`Bearer ${TOKEN}`);
  request.answer(200, {}, '{"id":"c1","data":[1.0]}');
  expect(await once).toMatchObject({ code: 0, stdout: "[1.0]" });

  const now = runMoor(appArgs(stage, "--json", "now"));
  (await service.requests.take()).answer(200, { Age: "3", ETag: '"e1"' }, '{"t":21}');
  expect(await now).toMatchObject({
    code: 0,
    stdout: '{"outcome":"snapshot","ageMs":3000,"etag":"\\"e1\\"","data":{"t":21}}',
  });

  const refused = runMoor(appArgs(stage, "now"));
  (await service.requests.take()).answer(401);
  expect((await refused).code).toBe(1);
  await service.refuse();
  const away = await runMoor(appArgs(stage, "once", "1"));
  expect([away.code, away.stdout]).toEqual([3, ""]);
  expect(away.stderr).not.toContain(TOKEN);
});

test("moor app watch prints states, presence and events until Ctrl-C", async () => {
  const stage = await setStage();
  const watch = await startMoor(appArgs(stage, "watch"));
  onTestFinished(async () => {
    await watch.kill();
  });
  const link = await welcomeNext(stage);
  await link.send('{"t":"presence","box":"online","since_ms":1700000000000}');
  await link.send('{"t":"event","data":{"door" : "open"}}');
  await watch.stdout.waitFor('{"event":{"door" : "open"}}');
  expect(watch.stdout.lines.slice(1)).toEqual([
    '{"state":"online","host":"moor.localhost"}',
    '{"presence":"online","sinceMs":1700000000000}',
    '{"event":{"door" : "open"}}',
  ]);
  watch.signal("SIGINT");
  expect(await watch.ended).toEqual({ kind: "exited", code: 0 });
});

test("moor box enroll posts code and public key, and keeps the service's keys", async () => {
  const stage = await setStage();
  const { service, at } = stage;
  const args = ["box", "enroll", "--endpoint", service.endpoint, "--ca-file", at("ca.pem")];
  await writeFile(at("code"), "ABCD-12345678-12345678\n");
  const files = [
    "--code-file",
    at("code"),
    "--identity",
    at("new.pem"),
    "--service-key",
    at("new.keys"),
    "--json",
  ];
  const run = runMoor([...args, ...files]);
  const request = await service.requests.take();
  const { code, publicKey } = JSON.parse(request.body) as { code: string; publicKey: string };
  expect([request.method, request.path, code]).toEqual(["POST", "/v1/enroll", "ABCD-12345678-12345678"]);
  request.answer(200, {}, JSON.stringify({ home: HOME, serviceKeys: [service.key.publicKey] }));
  const { code: exit, stdout } = await run;
  expect([exit, JSON.parse(stdout)]).toEqual([
    0,
    { home: HOME, publicKey, serviceKeys: [service.key.publicKey] },
  ]);
  expect(await readFile(at("new.keys"), "utf8")).toBe(`${service.key.publicKey}\n`);
  expect((await stat(at("new.pem"))).mode & 0o777).toBe(0o600);

  const again = runMoor([...args, ...files]);
  (await service.requests.take()).answer(401, {}, "{}");
  expect(await again).toMatchObject({ code: 1, stdout: "" });
  expect((await again).stderr).toContain("moor home enroll");
});

test("a second signal ends moor box at once, and what it had started with it", async () => {
  const stage = await setStage();
  const pid = stage.at("pid");
  const script = `echo $$ > ${pid}.new; mv ${pid}.new ${pid}; exec sleep 1000 2>&-`;
  const { box, link } = await startLinkedBox(stage, ["--exec", script]);
  await link.send(command("c1", "1"));
  const readPid = async () => Number(await readFile(pid, "utf8").catch(() => "")) || undefined;
  const group = await until(readPid, "a process id");
  box.signal("SIGTERM");
  await box.stderr.waitFor('"box-stopping"');
  box.signal("SIGTERM");
  expect(await box.ended).toEqual({ kind: "exited", code: 1 });
  await expectGroupEmpty(group);
});

test("moor box --feed with a file that cannot be read is a mistake in the command line", async () => {
  const stage = await setStage();
  for (const file of [stage.at("none"), stage.dir]) {
    const { code, stderr } = await runMoor([...boxArgs(stage), "--feed", file]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^moor: --feed: got ".*" \(E[A-Z]+\)/)]);
  }
});

test("Ctrl-C while a command is under way ends with its id and exit code 4", async () => {
  const stage = await setStage();
  const send = await startMoor(appArgs(stage, "--id", "c1", "send", "1"));
  onTestFinished(async () => {
    await send.kill();
  });
  const link = await welcomeNext(stage);
  await link.expect("cmd");
  send.signal("SIGINT");
  expect(await send.ended).toEqual({ kind: "exited", code: 4 });
  expect(send.stderr.text()).toContain("ask again with --id c1");

  const once = await startMoor(appArgs(stage, "--id", "c2", "once", "1"));
  onTestFinished(async () => {
    await once.kill();
  });
  await stage.service.requests.take();
  once.signal("SIGINT");
  expect(await once.ended).toEqual({ kind: "exited", code: 4 });
  expect(once.stderr.text()).toContain("ask again with --id c2");
});

test("what is wrong with a token or key file is told by its name and line, and nothing of it", async () => {
  const stage = await setStage();
  const { at, service } = stage;
  await writeFile(at("two.token"), `${TOKEN}\n${TOKEN}\n`);
  for (const verb of ["send", "once", "now"]) {
    const args = appArgs(stage, "--token-file", at("two.token"), verb);
    const { code, stderr } = await runMoor([...args, ...(verb === "now" ? [] : ["1"])]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("--token-file: got ")]);
    expect(stderr).not.toContain(TOKEN);
  }
  await writeFile(at("bad.keys"), `# of the service\n\n${service.key.publicKey}\nplanted-secret\n`);
  await writeFile(at("none.keys"), "# to come\n");
  for (const [file, got] of [
    ["bad.keys", '/bad.keys", line 4, a text of 14 characters'],
    ["none.keys", '/none.keys", which holds no key'],
  ] as const) {
    const { code, stderr } = await runMoor([...boxArgs(stage), "--service-key", at(file)]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(got)]);
    expect(stderr).not.toContain("planted");
  }
});

test("a box that is not accepted is told what to do, and prints what an operator compares", async () => {
  const stage = await setStage();
  const box = await startBoxProcess(stage);
  const link = (await stage.service.dials.take()).upgrade();
  await link.hello();
  await link.close(4401);
  await box.stderr.waitFor(`Is it enrolled for ${HOME} (moor box enroll)`);
  const [, publicKey = "", id] = /^public key (\S{43})\nkey id (\S{16})$/m.exec(box.stdout.text()) ?? [];
  const hash = createHash("sha256").update(Buffer.from(publicKey, "base64url")).digest("base64url");
  expect(id).toBe(hash.slice(0, 16));
});

test.skipIf(process.platform !== "linux")(
  "a code given as an argument is gone from the list of processes when the service hears of it",
  async () => {
    const { service, at } = await setStage();
    const code = "ABCD-12345678-12345678";
    const files = ["--identity", at("new.pem"), "--service-key", at("new.keys")];
    const args = ["box", "enroll", "--endpoint", service.endpoint, "--ca-file", at("ca.pem"), ...files];
    const withoutCode = await runMoor([...args, "--code", ""]);
    expect([withoutCode.code, withoutCode.stderr]).toEqual([
      2,
      expect.stringContaining("--code: got nothing, expected the code"),
    ]);
    const enrolling = await startMoor([...args, "--code", code]);
    const request = await service.requests.take();
    expect(JSON.parse(request.body)).toMatchObject({ code });
    const listed = await readFile(`/proc/${enrolling.pid}/cmdline`, "latin1");
    expect(listed).toContain("moor box enroll");
    expect(listed).not.toContain("12345678");
    request.answer(200, {}, JSON.stringify({ home: HOME, serviceKeys: [service.key.publicKey] }));
    expect(await enrolling.ended).toEqual({ kind: "exited", code: 0 });
  },
);

test("moor box enroll leaves the keys that a file has when the disk takes no more", async () => {
  const stage = await setStage();
  const { service, at } = stage;
  await writeFile(at("code"), "ABCD-12345678-12345678\n");
  const [, kept = ""] = /^(\S{43})$/m.exec(await readFile(at("service.keys"), "utf8")) ?? [];
  const other = Buffer.alloc(32, 5).toString("base64url");
  const enroll = async (keys: string, launcher?: readonly string[]) => {
    const files = ["--code-file", at("code"), "--identity", at("new.pem"), "--service-key", keys];
    const args = ["box", "enroll", "--endpoint", service.endpoint, "--ca-file", at("ca.pem"), ...files];
    const run = runMoor(args, launcher === undefined ? {} : { launcher });
    const request = await service.requests.take();
    request.answer(200, {}, JSON.stringify({ home: HOME, serviceKeys: [other] }));
    return run;
  };
  expect((await enroll(at("first.keys"))).code).toBe(0);
  const full = await enroll(at("service.keys"), ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"]);
  expect([full.code, full.stderr]).toEqual([2, expect.stringContaining(`it should hold\n${other}`)]);
  expect(await readFile(at("service.keys"), "utf8")).toContain(kept);
});

test("moor app send says what someone must act on while it still waits", async () => {
  const stage = await setStage();
  const send = await startMoor(appArgs(stage, "--log-level", "debug", "send", "1"));
  onTestFinished(async () => {
    await send.kill();
  });
  await (await stage.service.dials.take()).upgrade().welcome({ key: "AAAAAAAAAAAAAAAA" });
  await send.stderr.waitFor("a service key this client does not know");
  await send.stderr.waitFor('"link-dialling"');
  const link = await welcomeNext(stage);
  const { id } = await link.expect("cmd");
  await link.send(`{"t":"result","id":"${id}","data":2}`);
  expect(await send.ended).toEqual({ kind: "exited", code: 0 });
  expect(send.stdout.text()).toBe("2");
});
