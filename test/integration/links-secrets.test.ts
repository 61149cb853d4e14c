// Planted markers of the link plane: every token, key, code and payload of a home is looked for where it must not be.

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { boxKeyOf, dialPlainApp, dialPlainBox } from "@moor/testkit/link-plain";
import { createHousehold, type Household } from "@moor/testkit/household";
import {
  openOperator,
  runMoor,
  startMoorDev,
  until,
  verifies,
  type MoorDev,
  type RunningProcess,
} from "@moor/testkit";
import { afterAll, beforeAll, describe, expect } from "vitest";

const PLANTED = {
  command: "planted-command",
  result: "planted-result",
  event: "planted-event",
  now: "planted-now",
  wrongToken: `kitchen.moor_app_${"plantedwrongtoken".padEnd(43, "x")}_AAAAAA`,
};

describe("secrets of links", () => {
  let dev: MoorDev;
  let house: Household;
  let programs: RunningProcess[] = [];
  let secrets: Readonly<Record<string, string>> = {};
  let operatorAnswers = "";
  let refusals = "";
  let commandLines = "";

  beforeAll(async () => {
    dev = await startMoorDev({ args: ["--log-level", "debug"] });
    house = await createHousehold(dev);
    secrets = { ...PLANTED, ...(await house.secrets()), operatorToken: dev.operatorToken };
    const debug = ["--log-level", "debug"];
    const exec = ["--exec", `echo '{"r":"${PLANTED.result}"}'`];
    const box = await house.startBox([...debug, "--feed", "-", ...exec], { hasInput: true });
    const watch = await house.startApp(...debug, "watch");
    programs = [box, watch];
    await watch.stdout.waitFor('"presence":"online"');
    box.stdin.write(`{"now":"${PLANTED.now}"}\n{"event":"${PLANTED.event}"}\n`);
    await watch.stdout.waitFor(PLANTED.event);
    await until(async () => (await house.runNow()).stdout.includes(PLANTED.now), "the snapshot");
    for (const verb of ["send", "once"]) {
      const run = await house.runApp(...debug, verb, `{"c":"${PLANTED.command}"}`);
      expect([run.code, run.stdout]).toEqual([0, `{"r":"${PLANTED.result}"}`]);
      refusals += run.stderr;
    }
    commandLines = (await Promise.all([dev.process, ...programs].map(commandLineOf))).join("\n");
    await tryWrongly();
    await askOperator();
    expect((await runMoor(["move", house.home, "--to", "s2", "--force", "--data", dev.dataDir])).code).toBe(
      0,
    );
    await box.stderr.waitFor('"host":"s2.moor.localhost"');
  });

  afterAll(async () => {
    await Promise.all(programs.map((program) => program.stop()));
    await dev.stop();
    await house.remove();
  });

  /** Wrong tokens, keys and codes by every door, the answers kept. */
  async function tryWrongly(): Promise<void> {
    const { endpoint, home } = house;
    const key = boxKeyOf(Buffer.alloc(32, 3).toString("base64url"));
    const links = [
      await dialPlainApp({ endpoint, home, token: PLANTED.wrongToken, app: "wrong" }),
      await dialPlainApp({ endpoint, home, token: secrets["extensionToken"] ?? "", app: "wrong" }),
      await dialPlainBox({ endpoint, home, key }),
      await dialPlainBox({ endpoint, home, key, hello: { caps: PLANTED.command } }),
    ];
    refusals += JSON.stringify(links);
    const http = dev.endpoint;
    for (const token of [PLANTED.wrongToken, secrets["extensionToken"] ?? ""]) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const body = `{"id":"x","ttl_ms":1000,"data":"${PLANTED.command}"}`;
      const answer = await fetch(`${http}/v1/app/once`, { method: "POST", headers, body });
      expect(answer.status).toBe(401);
      refusals += await answer.text();
    }
    const body = JSON.stringify({ code: `0000-${secrets["enrolmentCode"]}`, publicKey: "A".repeat(43) });
    const answer = await fetch(`${http}/v1/enroll`, { method: "POST", body });
    expect(answer.status).toBe(401);
    refusals += await answer.text();
  }

  async function askOperator(): Promise<void> {
    const operator = await openOperator(dev.dataDir);
    const { home } = house;
    const targets = [
      `/v1/homes`,
      `/v1/homes/${home}`,
      `/v1/homes/${home}/tokens`,
      "/v1/keys",
      "/v1/service-keys",
    ];
    for (const target of [...targets, `/v1/tenants/${home}`, "/metrics"]) {
      operatorAnswers += JSON.stringify(await operator.request("GET", target));
    }
    for (const args of [
      ["home", "list"],
      ["home", "show", home],
      ["home", "token", "list", home],
    ]) {
      const run = await runMoor([...args, "--json", "--data", dev.dataDir]);
      operatorAnswers += run.stdout + run.stderr;
    }
  }

  verifies(
    ["L7", "L28", "L30"],
    "no token, key, code or payload is in any log, at the most talkative level",
    () => {
      const logs = [dev.process, ...programs].map(({ stderr }) => stderr.text()).join("\n");
      for (const event of ["link-online", "link-refused", "box-enrolled"]) expect(logs).toContain(event);
      expect(leaks(logs, secrets)).toEqual([]);
    },
  );

  verifies("L7", "no operator answer, metric or list shows a secret again", () => {
    expect(operatorAnswers).toContain("moor_link_handshakes_total");
    expect(operatorAnswers).toContain(house.home);
    expect(leaks(operatorAnswers, secrets)).toEqual([]);
  });

  verifies(["L7", "L28"], "no refusal tells what was sent, or what would have been right", () => {
    expect(refusals).toContain('"code":4401');
    expect(refusals).toContain("unauthorized");
    expect(leaks(refusals, secrets)).toEqual([]);
  });

  verifies("L30", "no command line carries a secret", () => {
    const { result: _, ...others } = secrets;
    expect(commandLines).toContain("--token-file");
    expect(leaks(commandLines, others)).toEqual([]);
  });

  verifies(["L7", "L28"], "the node's files hold no secret of a home, and no payload", async () => {
    for (const file of await readdir(dev.dataDir)) {
      const found = leaks(await readFile(path.join(dev.dataDir, file), "latin1"), secrets);
      expect([file, found]).toEqual([file, file === "operator.json" ? ["operatorToken"] : []]);
    }
  });
});

async function commandLineOf({ pid }: RunningProcess): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, "latin1");
}

/** Names of the secrets that `text` holds, tokens and codes also by their random parts alone. */
function leaks(text: string, secrets: Readonly<Record<string, string>>): string[] {
  return Object.entries(secrets)
    .filter(([, secret]) => partsOf(secret).some((part) => text.includes(part)))
    .map(([name]) => name);
}

function partsOf(secret: string): readonly string[] {
  const token = /_([0-9A-Za-z_-]{43})_/.exec(secret)?.[1];
  const groups = /^[0-9A-Z]{8}-[0-9A-Z]{8}$/.test(secret) ? secret.split("-") : [];
  return [secret, ...(token === undefined ? [] : [token]), ...groups];
}
