// A PostgreSQL server of one test: real, on loopback, with a password, and able to fail in the ways servers do.
//
// I1  What a test forgets to stop is killed when its process exits; what a killed process left is stopped by the next
//     one that starts a server.

import { spawn, type ChildProcess } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { collectLines, type LineLog } from "./line-log.ts";
import { claimPort } from "./ports.ts";
import {
  BINARIES_PREFIX,
  preparePostgres,
  UNPRIVILEGED_ID,
  type PostgresBinaries,
} from "./postgres-binaries.ts";
import { until, within } from "./within.ts";

/** A server under test. */
export interface PostgresServer {
  readonly port: number;
  /** `postgres://…`, with its password. `through`: another loopback port that leads to it, as a TcpProxy's. */
  url(database?: string, through?: number): string;
  /** Makes an empty database; gives its URL. */
  createDatabase(name: string): Promise<string>;
  /** Ends it in order: connections are told and cut. */
  stop(): Promise<void>;
  /** SIGKILL to all of it, as a power cut. */
  kill(): Promise<void>;
  /** Starts it again after `stop` or `kill`, at the same port with the same data. */
  start(): Promise<void>;
  /** SIGSTOP to all of it: connections stay, nothing answers. */
  freeze(): void;
  /** Ends a freeze. */
  thaw(): void;
  /** Ends it and deletes its data. */
  remove(): Promise<void>;
}

const FOLDER_PREFIX = "moor-postgres-data-";
const PASSWORD = "planted-database-password";
const START_MS_MAX = 30_000;
const READY = /database system is ready to accept connections/;

/** Starts a server of its own. Rejects where the binaries are missing (`postgresMissing`). */
export async function startPostgres(): Promise<PostgresServer> {
  const binaries = await preparePostgres();
  sweepAbandoned();
  const dir = await mkdtemp(path.join(tmpdir(), FOLDER_PREFIX));
  writeFileSync(path.join(dir, "owner.pid"), String(process.pid));
  const data = path.join(dir, "data");
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(path.join(dir, "password"), PASSWORD);
  for (const owned of [dir, data, path.join(dir, "password")]) own(owned);
  await initialise(binaries, dir, data);
  const server = new Server(binaries, dir, data, await claimPort());
  await server.start();
  return server;
}

class Server implements PostgresServer {
  readonly port: number;
  readonly #binaries: PostgresBinaries;
  readonly #dir: string;
  readonly #data: string;
  readonly #onExit = () => this.#signalAll("SIGKILL");
  #child: ChildProcess | undefined;

  constructor(binaries: PostgresBinaries, dir: string, data: string, port: number) {
    this.#binaries = binaries;
    this.#dir = dir;
    this.#data = data;
    this.port = port;
  }

  url(database = "postgres", through: number = this.port): string {
    return `postgres://moor:${PASSWORD}@127.0.0.1:${through}/${database}`;
  }

  async createDatabase(name: string): Promise<string> {
    const { Client } = (await import("pg")).default;
    const client = new Client({ connectionString: this.url() });
    await client.connect();
    await client.query(`create database "${name}"`);
    await client.end();
    return this.url(name);
  }

  async start(): Promise<void> {
    const options = ["-D", this.#data, "-h", "127.0.0.1", "-p", String(this.port), "-k", ""];
    // Data survives the server's own death either way; the machine's is not tested.
    const settings = ["fsync=off", "max_connections=200", "log_min_messages=log", "lc_messages=C"];
    const child = run(this.#binaries.postgres, [...options, ...settings.flatMap((each) => ["-c", each])]);
    this.#child = child;
    process.on("exit", this.#onExit);
    await ready(child.log);
  }

  stop(): Promise<void> {
    return this.#end(() => this.#child?.kill("SIGINT"));
  }

  kill(): Promise<void> {
    return this.#end(() => this.#signalAll("SIGKILL"));
  }

  freeze(): void {
    this.#signalAll("SIGSTOP");
  }

  thaw(): void {
    this.#signalAll("SIGCONT");
  }

  async remove(): Promise<void> {
    this.thaw();
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5 });
    this.#binaries.release();
  }

  async #end(signal: () => void): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const backends = child.pid === undefined ? [] : childrenOf(child.pid);
    const ended = new Promise<void>((resolve) => void child.once("exit", () => resolve()));
    signal();
    await within(ended, "PostgreSQL to end", START_MS_MAX);
    process.off("exit", this.#onExit);
    // The next start refuses while one of them still holds the shared memory.
    await until(() => backends.every((pid) => !isAlive(pid)), "PostgreSQL's processes to end");
  }

  /** The server's processes lead groups of their own: each is signalled, the parent first so that it starts no more. */
  #signalAll(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#child?.exitCode !== null || this.#child.signalCode !== null) return;
    for (const each of [pid, ...childrenOf(pid)]) trySignal(each, signal);
  }
}

interface LoggedChild extends ChildProcess {
  readonly log: LineLog;
}

function run(file: string, args: readonly string[]): LoggedChild {
  const isRoot = process.getuid?.() === 0;
  const child = spawn(file, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { LC_ALL: "C", PATH: process.env["PATH"] ?? "" },
    ...(isRoot ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID, cwd: "/" } : {}),
  });
  child.stdout.resume();
  return Object.assign(child, { log: collectLines(child.stderr, `stderr of ${path.basename(file)}`) });
}

async function initialise(binaries: PostgresBinaries, dir: string, data: string): Promise<void> {
  const args = ["-D", data, "-U", "moor", "-A", "scram-sha-256", "--pwfile", path.join(dir, "password")];
  const child = run(binaries.initdb, [...args, "-E", "UTF8", "--no-locale", "--no-sync"]);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const code = await within(ended, "initdb to end", START_MS_MAX);
  if (code !== 0) throw new Error(`initdb ended with ${code}:\n${child.log.text()}`);
}

async function ready(log: LineLog): Promise<void> {
  await log.waitFor(READY, START_MS_MAX);
}

/** Stops servers whose tests were killed, and deletes what they left. */
function sweepAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(FOLDER_PREFIX) && !name.startsWith(BINARIES_PREFIX)) continue;
    const dir = path.join(tmpdir(), name);
    const owner = readPid(path.join(dir, "owner.pid"));
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    const postmaster = readPid(path.join(dir, "data", "postmaster.pid"));
    if (postmaster !== undefined && commandOf(postmaster).includes(dir)) {
      for (const pid of [postmaster, ...childrenOf(postmaster)]) trySignal(pid, "SIGKILL");
    }
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function own(file: string): void {
  if (process.getuid?.() === 0) chownSync(file, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
}

function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** A process that ended and was not waited for yet is no more. */
function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}
