// A home as its people have it: created and enrolled by command at a real node, a box and apps as real programs, every
// secret in a file of its own.
//
// Spec: L7, L28, L30. I1  No secret is in an argument: tokens and keys are in files, the enrolment code comes from stdin.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { runMoor, startMoor, type MoorDev, type MoorRun } from "./moor-process.ts";
import type { RunningProcess } from "./processes.ts";
import { createTempDir } from "./temp-dir.ts";

/** A home with its files. */
export interface Household {
  readonly home: string;
  /** What its box and apps are configured with: `ws://moor.localhost:40001`. */
  readonly endpoint: string;
  /** A path in its folder: `box.pem`, `box.json`, `service.keys`, `app.token`, `extension.token`. */
  at(name: string): string;
  /** Everything in its files and codes that nobody else may see, by name. */
  secrets(): Promise<Readonly<Record<string, string>>>;
  /** Starts `moor box …args` and waits until it is online. */
  startBox(args?: readonly string[], options?: { readonly hasInput?: boolean }): Promise<RunningProcess>;
  /** Starts `moor app …args` with the app token. */
  startApp(...args: readonly string[]): Promise<RunningProcess>;
  /** Runs `moor app …args` with the app token to its end. */
  runApp(...args: readonly string[]): Promise<MoorRun>;
  /** Looks at the snapshot with the extension token. */
  runNow(): Promise<MoorRun>;
  remove(): Promise<void>;
}

/** Creates and enrols a home at a node. */
export async function createHousehold(
  node: Pick<MoorDev, "dataDir" | "endpoint">,
  home = "kitchen",
): Promise<Household> {
  const folder = await createTempDir("household");
  const at = (name: string) => path.join(folder.path, name);
  const endpoint = `ws://moor.localhost:${new URL(node.endpoint).port}`;
  const operate = (...args: readonly string[]) => demand([...args, "--json", "--data", node.dataDir]);
  await operate("home", "create", home);
  const { code } = JSON.parse(await operate("home", "enroll", home)) as { readonly code: string };
  for (const kind of ["app", "extension"]) {
    await operate("home", "token", "create", home, "--kind", kind, "--out", at(`${kind}.token`));
  }
  await enroll(endpoint, code, at);
  const common = ["--endpoint", endpoint];
  const keys = ["--service-key", at("service.keys")];
  const appArgs = (token: string, args: readonly string[]) => {
    return ["app", ...common, "--token-file", at(token), ...keys, ...args];
  };
  return {
    home,
    endpoint,
    at,
    secrets: () => readSecrets(at, code),
    startBox: async (args = [], options = {}) => {
      const files = ["--identity", at("box.pem"), "--record", at("box.json"), ...keys];
      const box = await startMoor(["box", ...common, "--home", home, ...files, ...args], options);
      await box.stderr.waitFor('"link-online"').catch(async (error: unknown) => {
        await box.kill();
        throw error;
      });
      return box;
    },
    startApp: (...args) => startMoor(appArgs("app.token", args)),
    runApp: (...args) => runMoor(appArgs("app.token", args)),
    runNow: () => runMoor(appArgs("extension.token", ["now"])),
    remove: () => folder.remove(),
  };
}

async function enroll(endpoint: string, code: string, at: Household["at"]): Promise<void> {
  const files = ["--identity", at("box.pem"), "--service-key", at("service.keys")];
  const enrolling = await startMoor(["box", "enroll", "--endpoint", endpoint, "--code-file", "-", ...files], {
    hasInput: true,
  });
  enrolling.stdin.end(`${code}\n`);
  const end = await enrolling.ended;
  if (end.kind !== "exited" || end.code !== 0) throw new Error(`moor box enroll: ${enrolling.stderr.text()}`);
}

async function demand(args: readonly string[]): Promise<string> {
  const run = await runMoor(args);
  if (run.code !== 0)
    throw new Error(`moor ${args.slice(0, 3).join(" ")} ended with ${run.code}: ${run.stderr}`);
  return run.stdout;
}

async function readSecrets(at: Household["at"], code: string): Promise<Record<string, string>> {
  const text = async (name: string) => (await readFile(at(name), "utf8")).trim();
  const pem = await text("box.pem");
  return {
    appToken: await text("app.token"),
    extensionToken: await text("extension.token"),
    boxKey: pem.split("\n").slice(1, -1).join(""),
    // The first group is a row's number, which no one need hide.
    enrolmentCode: code.slice(code.indexOf("-") + 1),
  };
}
