// One node: directory, shards, entry and listeners of one process, started and stopped in order.
//
// Spec: T1. Design "Shape": shards and the entry know each other only through ports, so that either may be elsewhere.
// I1  A node serves only what it has bound completely: a start that fails leaves nothing behind.
// I2  Leaving: readiness off, polls end, calls finish within the grace, then listeners and files close.

import type { Runtime } from "@moor/runtime";
import type { Directory, Replica, ShardId } from "./directory/directory.ts";
import { openSqliteDirectory } from "./directory/sqlite-directory.ts";
import { ByteBudget } from "./entry/byte-budget.ts";
import { Entry } from "./entry/entry.ts";
import type { EntryContext } from "./entry/entry-context.ts";
import { SeenRecorder } from "./entry/seen-recorder.ts";
import { openHttpListener, type HttpListener } from "./http/http-listener.ts";
import type { NodeOptions } from "./node-options.ts";
import { createMetrics, type Metrics } from "./operator/metrics.ts";
import { loadOperatorToken, writeOperatorFile } from "./operator/operator-file.ts";
import { createOperatorListener, type OperatorListener } from "./operator/operator-listener.ts";
import type { EntryId, EntryPort } from "./peer/peer-link.ts";
import { CLOSE_GRACE_MS, NODE_BODY_BYTES_MAX } from "./server-limits.ts";
import { Shard } from "./shard/shard.ts";
import { createTokenSealer } from "./tokens/token-sealer.ts";

/** A node that serves. */
export interface MoorNode {
  /** URL that agents and callers are given. */
  readonly endpoint: string;
  readonly operatorUrl: string;
  readonly dataDir: string;
  /** Leaves politely: resolves when everything is closed. `graceMs` bounds the wait for held calls, default 70 s. */
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

/** Starts a node on an embedded directory. Throws ConfigError for what cannot be bound, opened or used. */
export async function startNode(options: NodeOptions): Promise<MoorNode> {
  const { directory, replica } = await openSqliteDirectory({
    dir: options.dataDir,
    runtime: options.runtime,
    logger: options.logger,
  });
  const parts = new NodeParts(options, directory, replica);
  try {
    await parts.start();
  } catch (error) {
    await parts.close(0);
    throw error;
  }
  return {
    endpoint: parts.endpoint,
    operatorUrl: parts.operatorUrl,
    dataDir: options.dataDir,
    close: ({ graceMs = CLOSE_GRACE_MS } = {}) => parts.close(graceMs),
  };
}

class NodeParts {
  readonly #options: NodeOptions;
  readonly #directory: Directory;
  readonly #replica: Replica;
  readonly #metrics: Metrics = createMetrics();
  readonly #seen: SeenRecorder;
  readonly #shards = new Map<ShardId, Shard>();
  readonly #entry: Entry;
  readonly #entryId: EntryId;
  #isReady = false;
  #isLeaving = false;
  #publicListener: HttpListener | undefined;
  #operatorListener: OperatorListener | undefined;
  #operatorPort = 0;
  #closing: Promise<void> | undefined;

  constructor(options: NodeOptions, directory: Directory, replica: Replica) {
    const { runtime, logger } = options;
    this.#options = options;
    this.#directory = directory;
    this.#replica = replica;
    this.#seen = new SeenRecorder(directory, runtime, logger);
    this.#entryId = mintIncarnation(runtime);
    this.#entry = new Entry(this.#entryContext());
  }

  get endpoint(): string {
    return this.#options.publicUrl ?? listenerUrl(this.#options.host, this.#publicListener?.port ?? 0);
  }

  get operatorUrl(): string {
    return listenerUrl(this.#options.operatorHost, this.#operatorPort);
  }

  async start(): Promise<void> {
    const { logger, dataDir, node } = this.#options;
    await this.#directory.registerNode({
      id: node.id,
      incarnation: this.#entryId,
      shards: node.shards,
    });
    for (const { id } of node.shards) this.#openShard(id);
    this.#countAtScrape();
    await this.#openPublicListener();
    await this.#openOperatorListener();
    this.#isReady = true;
    const shards = node.shards.map(({ id }) => id).join(",");
    const { endpoint, operatorUrl } = this;
    logger.info("node-ready", { node: node.id, endpoint, operator: operatorUrl, dataDir, shards });
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#leave(graceMs);
    return this.#closing;
  }

  async #leave(graceMs: number): Promise<void> {
    const { logger } = this.#options;
    this.#isReady = false;
    this.#isLeaving = true;
    logger.info("node-leaving", { callsHeld: this.#entry.calls.size, pollsHeld: this.#entry.polls.size });
    await this.#entry.drain(graceMs);
    await this.#publicListener?.close();
    await this.#operatorListener?.close();
    for (const shard of this.#shards.values()) shard.close();
    await this.#seen.close();
    await this.#directory.close();
    logger.info("node-stopped");
  }

  #openShard(id: ShardId): void {
    const { runtime, logger } = this.#options;
    const entries = (entry: EntryId): EntryPort | undefined => (entry === this.#entryId ? port : undefined);
    const shard = new Shard({ id, replica: this.#replica, entries, runtime, logger });
    const port = this.#entry.portFor(() => shard);
    this.#shards.set(id, shard);
  }

  #entryContext(): EntryContext {
    const { runtime, logger } = this.#options;
    return {
      entry: this.#entryId,
      replica: this.#replica,
      runtime,
      logger,
      metrics: this.#metrics,
      shardPort: (id) => this.#shards.get(id),
      commandTokens: createTokenSealer("command", this.#replica, runtime),
      sessionTokens: createTokenSealer("session", this.#replica, runtime),
      bodies: new ByteBudget(NODE_BODY_BYTES_MAX),
      settings: {
        corsOrigins: this.#options.corsOrigins ?? [],
        isOpenAccessForced: this.#options.isOpenAccessForced ?? false,
      },
      noteSeen: (tunnel) => this.#seen.note(tunnel),
      isLeaving: () => this.#isLeaving,
    };
  }

  async #openPublicListener(): Promise<void> {
    const { host, port, runtime, logger } = this.#options;
    this.#publicListener = await openHttpListener({
      host,
      port,
      portOption: "--port",
      runtime,
      logger,
      isLeaving: () => this.#isLeaving,
      handle: (exchange) => this.#entry.handle(exchange, () => this.#isReady),
    });
  }

  async #openOperatorListener(): Promise<void> {
    const { dataDir, operatorHost, operatorPort, runtime, logger } = this.#options;
    const token = loadOperatorToken(dataDir, runtime);
    const listener = createOperatorListener({
      directory: this.#directory,
      replica: this.#replica,
      metrics: this.#metrics,
      token,
      runtime,
      logger,
      publicUrl: () => this.endpoint,
      isReady: () => this.#isReady,
    });
    const bound = await listener.listen(operatorHost, operatorPort);
    this.#operatorListener = listener;
    this.#operatorPort = bound.port;
    writeOperatorFile(dataDir, { url: this.operatorUrl, token });
  }

  /** Gauges that would cost something to keep are read when somebody asks. */
  #countAtScrape(): void {
    const gauge = this.#metrics.callsQueued as { collect?: () => void };
    gauge.collect = () => {
      let callsQueued = 0;
      for (const shard of this.#shards.values()) callsQueued += shard.gauges().callsQueued;
      this.#metrics.callsQueued.set(callsQueued);
    };
  }
}

/** 16 hex characters from 64 random bits: new at each start. */
function mintIncarnation(runtime: Runtime): EntryId {
  return Buffer.from(runtime.randomBytes(8)).toString("hex") as EntryId;
}

/** The URL of a listener as a peer on this machine would write it. */
function listenerUrl(host: string, port: number): string {
  const named = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${named.includes(":") ? `[${named}]` : named}:${port}`;
}
