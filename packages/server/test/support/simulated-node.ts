// A whole node but for sockets, files and time: entry, shards and routes as in production, on virtual time.

import { createSilentLogger, type Logger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import type { HomeRecord, TunnelRecord } from "../../src/directory/directory.ts";
import type { KeyKind } from "../../src/directory/keys.ts";
import { ByteBudget } from "../../src/entry/byte-budget.ts";
import { Entry } from "../../src/entry/entry.ts";
import type { EntryContext, EntrySettings } from "../../src/entry/entry-context.ts";
import {
  createPlacementKnowledge,
  replicaPlacements,
  type PlacementKnowledge,
} from "../../src/entry/placement-knowledge.ts";
import { replicaTenants } from "../../src/entry/tenant-directory.ts";
import { applyChange } from "../../src/moves/apply-change.ts";
import { createTimeline, type Timeline } from "../../src/moves/timeline.ts";
import { createCommandTokens } from "../../src/tokens/command-token.ts";
import { createMetrics, type Metrics } from "../../src/operator/metrics.ts";
import { noLinks } from "../../src/peer/no-links.ts";
import type { EntryId, EntryPort } from "../../src/peer/peer-link.ts";
import { Shard } from "../../src/shard/shard.ts";
import { createTokenSealer } from "../../src/tokens/token-sealer.ts";
import { FakeExchange, type FakeRequest } from "./fake-exchange.ts";
import { FakeReplica } from "./fake-replica.ts";
import {
  callRequest,
  pollRequest,
  responseRequest,
  type CallOptions,
  type PollOptions,
  type ReceivedCommand,
  type ResponseFields,
  type ResponseOptions,
} from "./requests.ts";

export interface SimulatedNodeOptions {
  readonly seed?: number;
  readonly shards?: readonly string[];
  readonly bodyBytesMax?: number;
  readonly settings?: Partial<EntrySettings>;
  readonly logger?: Logger;
  readonly isCorrecting?: boolean;
}

const ENTRY = "e1".repeat(8) as EntryId;

export class SimulatedNode {
  readonly runtime: VirtualRuntime;
  readonly replica: FakeReplica;
  readonly placements: PlacementKnowledge;
  readonly timeline: Timeline;
  readonly entry: Entry;
  readonly metrics: Metrics = createMetrics({ withProcess: false });
  readonly shards = new Map<string, Shard>();
  readonly seen: string[] = [];
  isLeaving = false;
  #requestCount = 0;

  constructor(options: SimulatedNodeOptions = {}) {
    this.runtime = new VirtualRuntime(options.seed ?? 1);
    this.replica = new FakeReplica(this.runtime);
    this.placements = createPlacementKnowledge(replicaPlacements(this.replica));
    this.timeline = createTimeline(this.runtime);
    this.entry = new Entry(this.#context(options));
    for (const id of options.shards ?? ["s1"]) {
      const shard = new Shard({
        id: id as Shard["shard"],
        placements: this.placements,
        wasSeen: (tunnel) => this.replica.tunnel(tunnel)?.isSeen,
        noteSeen: (tunnel) => {
          this.seen.push(tunnel);
          this.replica.markSeen(tunnel);
        },
        entries: (entry) => this.#entryPort(entry),
        timeline: this.timeline,
        runtime: this.runtime,
        logger: createSilentLogger(),
      });
      this.shards.set(id, shard);
    }
    this.replica.onChange((change) =>
      applyChange(change, {
        replica: this.replica,
        placements: this.placements,
        shards: [...this.shards.values()],
        entry: this.entry,
        homes: [],
        links: noLinks(ENTRY),
      }),
    );
  }

  /** Sends any request to the public routes; its answer may come later. */
  async send(request: FakeRequest): Promise<FakeExchange> {
    this.#requestCount += 1;
    const exchange = new FakeExchange(request, `req_${this.#requestCount}`);
    void this.entry.handle(exchange, () => !this.isLeaving);
    await this.settle();
    return exchange;
  }

  /** A caller's POST to the connector. */
  call(
    tunnel: Pick<TunnelRecord | HomeRecord, "id">,
    key: string | undefined,
    options: CallOptions = {},
  ): Promise<FakeExchange> {
    return this.send(callRequest(tunnel, key, options));
  }

  /** An agent's poll. */
  poll(tunnel: TunnelRecord, key: string, options: PollOptions = {}): Promise<FakeExchange> {
    return this.send(pollRequest(tunnel, key, options));
  }

  /** An agent's response to a command; `fields` are added to `request_id`, or a whole body is given. */
  respond(
    tunnel: TunnelRecord,
    key: string,
    command: Pick<ReceivedCommand, "request_id" | "shard_token">,
    fields: ResponseFields,
    options: ResponseOptions = {},
  ): Promise<FakeExchange> {
    return this.send(responseRequest(tunnel, key, { command, fields, ...options }));
  }

  /** A tunnel with a key of each kind. */
  tunnel(fields: Partial<TunnelRecord> = {}): {
    readonly tunnel: TunnelRecord;
    readonly agentKey: string;
    readonly agentKeyId: string;
    readonly connectorKey: string;
  } {
    const tunnel = this.replica.addTunnel(fields);
    const agent = this.key("agent", tunnel);
    return {
      tunnel,
      agentKey: agent.text,
      agentKeyId: agent.id,
      connectorKey: this.key("connector", tunnel).text,
    };
  }

  key(kind: KeyKind, tunnel: TunnelRecord): { readonly id: string; readonly text: string } {
    return this.replica.addKey(kind, tunnel.id);
  }

  advance(byMs: number): Promise<void> {
    return this.runtime.advanceAsync(byMs);
  }

  settle(): Promise<void> {
    return this.runtime.advanceAsync(0);
  }

  #entryPort(entry: EntryId): EntryPort | undefined {
    return entry === ENTRY ? this.entry.port : undefined;
  }

  #context(options: SimulatedNodeOptions): EntryContext {
    const { runtime, replica } = this;
    return {
      entry: ENTRY,
      tenants: replicaTenants(replica),
      placements: this.placements,
      runtime,
      logger: options.logger ?? createSilentLogger(),
      metrics: this.metrics,
      shardPort: (shard) => this.shards.get(shard),
      entryPort: (entry) => this.#entryPort(entry),
      answers: { deliver: () => Promise.resolve("not-pending") },
      commandTokens: createCommandTokens(ENTRY, runtime),
      pollingTokens: createTokenSealer("poll", replica, runtime),
      sessionTokens: createTokenSealer("session", replica, runtime),
      isCorrecting: () => options.isCorrecting ?? false,
      bodies: new ByteBudget(options.bodyBytesMax ?? 64 * 1024 * 1024),
      timeline: this.timeline,
      settings: { corsOrigins: [], isOpenAccessForced: false, ...options.settings },
      isLeaving: () => this.isLeaving,
    };
  }
}

export { commandOf, commandsOf, INSTANCE_A, INSTANCE_B, type ReceivedCommand } from "./requests.ts";
