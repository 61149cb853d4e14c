// One node of a cluster: a real `moor serve` process that a test can stop, kill and start again.
//
// Spec: T1.
// I1  Ports and data directory stay over restarts: clients and peers find it where it was.
// I2  The lines of every start are kept: `events` tells what all of its processes have logged.

import type { LineLog } from "./line-log.ts";
import { MOOR_BIN } from "./moor-process.ts";
import { openOperator, type OperatorClient } from "./operator-client.ts";
import { startProcess, type ProcessEnd, type RunningProcess } from "./processes.ts";
import type { TcpProxy } from "./tcp-proxy.ts";

/** What a node is started from. */
export interface ClusterNodeParts {
  readonly id: string;
  /** It has no directory: its operator listener, if any, knows no tenants. */
  readonly isBootstrap: boolean;
  readonly configFile: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nodeArgs: readonly string[];
  /** Numbers of sockets that each of its processes inherits, from 3 on. */
  readonly inherited: readonly number[];
  readonly internalProxy: TcpProxy | undefined;
  readonly databaseProxy: TcpProxy | undefined;
}

/** A line of a node's log. */
export type NodeEvent = Readonly<Record<string, unknown>> & {
  readonly event: string;
  readonly level: string;
};

export class ClusterNode {
  readonly id: string;
  readonly isBootstrap: boolean;
  readonly dataDir: string;
  readonly #parts: ClusterNodeParts;
  readonly #logs: LineLog[] = [];
  #process: RunningProcess | undefined;
  #operator: OperatorClient | undefined;
  #endpoint = "";

  constructor(parts: ClusterNodeParts) {
    this.id = parts.id;
    this.isBootstrap = parts.isBootstrap;
    this.dataDir = parts.dataDir;
    this.#parts = parts;
  }

  /** What agents and callers are configured with. */
  get endpoint(): string {
    return this.#endpoint;
  }

  /** Its operator API. */
  get operator(): OperatorClient {
    if (this.#operator === undefined) throw new Error(`node ${this.id} has no operator API`);
    return this.#operator;
  }

  get process(): RunningProcess {
    if (this.#process === undefined) throw new Error(`node ${this.id} does not run`);
    return this.#process;
  }

  /** The wire by which other nodes reach it. */
  get internalProxy(): TcpProxy {
    if (this.#parts.internalProxy === undefined) throw new Error(`node ${this.id} has no internal proxy`);
    return this.#parts.internalProxy;
  }

  /** The wire by which it reaches the database. */
  get databaseProxy(): TcpProxy {
    if (this.#parts.databaseProxy === undefined) throw new Error(`node ${this.id} has no database proxy`);
    return this.#parts.databaseProxy;
  }

  /** Starts it and waits until it serves; gives the milliseconds that took. */
  async start(): Promise<number> {
    const startedAtMs = performance.now();
    const { id, configFile, env, nodeArgs, inherited } = this.#parts;
    const moor = await startProcess({
      label: `moor serve (${id})`,
      env,
      inherited,
      args: [...nodeArgs, MOOR_BIN, "serve", `--config=${configFile}`, "--json"],
    });
    this.#process = moor;
    this.#logs.push(moor.stderr);
    const ready = await moor.stdout.waitFor('"ready"').catch(async (error: unknown) => {
      await this.kill();
      throw new Error(`node ${id} did not get ready; stderr:\n${moor.stderr.text()}`, { cause: error });
    });
    const tookMs = performance.now() - startedAtMs;
    this.#endpoint = (JSON.parse(ready) as { readonly endpoint: string }).endpoint;
    if (!this.isBootstrap) this.#operator = await openOperator(this.dataDir);
    return tookMs;
  }

  /** Stops it and starts it again; gives the milliseconds of the start. */
  async restart(): Promise<number> {
    await this.stop();
    return this.start();
  }

  /** SIGTERM and the end. */
  async stop(deadlineMs?: number): Promise<ProcessEnd | undefined> {
    const running = this.#process;
    this.#process = undefined;
    const end = await running?.stop(deadlineMs);
    await running?.expectGroupEmpty();
    return end;
  }

  /** SIGKILL, as a power cut. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    await running?.kill();
    await running?.expectGroupEmpty();
  }

  /** Everything it has logged in all of its starts; `name` leaves only those events. */
  events(name?: string): readonly NodeEvent[] {
    const events = this.#logs.flatMap(({ lines }) => lines.flatMap(parseEvent));
    return name === undefined ? events : events.filter(({ event }) => event === name);
  }

  /** Stops it and takes down its proxies. */
  async remove(): Promise<void> {
    await this.stop();
    await this.#parts.internalProxy?.close();
    await this.#parts.databaseProxy?.close();
  }
}

function parseEvent(line: string): NodeEvent[] {
  if (!line.startsWith("{")) return [];
  try {
    return [JSON.parse(line) as NodeEvent];
  } catch {
    return []; // The last line of a killed process may be half a line.
  }
}
