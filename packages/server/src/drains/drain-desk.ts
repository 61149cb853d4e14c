// Drains a shard wherever it runs: orders and reports go to its node, this one or another over the peer link.
//
// Spec: L24; design "Drains and restarts"; docs/protocol/peer-link.md (`drain`, `drain-report`).
// I1  A node drains as a whole: the answer names every shard of it.
// I2  Only the node that runs the shard acts; one that does not any more says so.
// I3  A node that is leaving takes no further order: its spread is the first one's.

import { ProtocolError } from "@moor/protocol";
import type { Logger } from "@moor/runtime";
import type { ShardId } from "../directory/directory.ts";
import { read, type RawHead } from "../peer/peer-messages.ts";
import type { Reply } from "../peer/peer-requests.ts";
import type { NodeMessageHandler } from "../peer/peer-router.ts";
import type { DrainForecast, DrainReport } from "./drain-report.ts";
import type { NodeDrain } from "./node-drain.ts";

/** An operator's order. */
export interface DrainOrder {
  readonly shard: ShardId;
  /** Instead of the planned spread. Milliseconds, SPREAD_MS_MIN–SPREAD_MS_MAX. */
  readonly spreadMs: number | undefined;
  /** Only says what would be done. */
  readonly isDryRun: boolean;
  readonly actor: string;
  readonly reason: string;
}

/** What the operator API asks. */
export interface DrainDesk {
  /** Tells the shard's node to leave. Rejects with `shard_not_found`, `conflict` (nobody runs it, it leaves already) or `node_unreachable`. */
  order(order: DrainOrder): Promise<DrainForecast>;
  /** The report of the newest drain that the shard's node knows of. Rejects as `order`, and with `not_found`. */
  report(shard: ShardId): Promise<DrainReport>;
}

export interface DrainDeskOptions {
  readonly selfNode: string;
  readonly drain: Pick<NodeDrain, "isLeaving" | "order" | "foretell" | "report" | "linkedHere">;
  /** The node that runs a shard: empty = none, undefined = there is no such shard. */
  readonly nodeOf: (shard: ShardId) => string | undefined;
  readonly ask: (nodeId: string, head: RawHead) => Promise<Reply>;
  readonly logger: Logger;
}

/** A desk, and what other nodes' desks ask of this one. */
export function createDrainDesk(options: DrainDeskOptions): {
  readonly desk: DrainDesk;
  readonly handlers: Readonly<Record<string, NodeMessageHandler>>;
} {
  const { drain } = options;
  return {
    desk: {
      order: async (order) => {
        const { shard, spreadMs, isDryRun, actor, reason } = order;
        const node = nodeOf(options, shard);
        if (node === options.selfNode) {
          if (isTooLate(options, order)) throw leavesAlready(node);
          return carryOut(options, order);
        }
        const head = { t: "drain", shard, spreadMs, isDryRun, actor, reason };
        return (await ask(options, node, head, "forecast")) as unknown as DrainForecast;
      },
      report: async (shard) => {
        const node = nodeOf(options, shard);
        if (node === options.selfNode) return known(drain.report());
        const report = await ask(options, node, { t: "drain-report", shard }, "report");
        return report as unknown as DrainReport;
      },
    },
    handlers: {
      drain: (_peer, { head }, reply) => {
        const isOurs = options.nodeOf(read.shard(head)) === options.selfNode;
        const order = readOrder(head);
        if (isOurs && isTooLate(options, order))
          return reply({ t: "drain-reply", forecast: null, isLeaving: true });
        reply({ t: "drain-reply", forecast: isOurs ? carryOut(options, order) : null });
      },
      "drain-report": (_peer, _message, reply) =>
        reply({ t: "drain-report-reply", report: drain.report() ?? null }),
      "drain-seen": (_peer, { head }, reply) => {
        const linked = drain.linkedHere(read.text(head, "salt"), read.texts(head, "marks"));
        void linked.then((marks) => reply({ t: "drain-seen-reply", marks }));
      },
    },
  };
}

/** Asks these nodes which of `marks` are of clients linked there now; who does not answer knows of none. Never rejects. */
export async function askMarks(
  nodes: readonly string[],
  ask: (nodeId: string, head: RawHead) => Promise<Reply>,
  salt: string,
  marks: readonly string[],
): Promise<readonly string[]> {
  if (marks.length === 0) return [];
  const replies = await Promise.all(nodes.map((node) => ask(node, { t: "drain-seen", salt, marks })));
  return replies.flatMap((reply) => {
    const seen = reply?.head["marks"];
    return Array.isArray(seen) ? seen.filter((mark) => typeof mark === "string") : [];
  });
}

function isTooLate({ drain }: DrainDeskOptions, { isDryRun }: DrainOrder): boolean {
  return drain.isLeaving && !isDryRun;
}

function leavesAlready(node: string): ProtocolError {
  return new ProtocolError("conflict", { message: `${node} is leaving already` });
}

function carryOut({ drain, logger }: DrainDeskOptions, order: DrainOrder): DrainForecast {
  const { shard, spreadMs, isDryRun, actor, reason } = order;
  if (isDryRun) return drain.foretell(spreadMs);
  logger.info("drain-ordered", { shard, spreadMs, actor, reason });
  return drain.order(spreadMs);
}

function nodeOf({ nodeOf: find }: DrainDeskOptions, shard: ShardId): string {
  const node = find(shard);
  if (node === undefined) throw new ProtocolError("shard_not_found");
  if (node === "") throw new ProtocolError("conflict", { message: `no node runs ${shard}` });
  return node;
}

async function ask(
  options: DrainDeskOptions,
  node: string,
  head: RawHead,
  member: "forecast" | "report",
): Promise<RawHead> {
  const reply = await options.ask(node, head);
  if (reply === undefined) {
    const message = `${node}, which runs ${String(head["shard"])}, cannot be reached from ${options.selfNode}`;
    throw new ProtocolError("node_unreachable", { message });
  }
  if (reply.head[member] !== null) return read.object(reply.head, member);
  if (member === "report") throw noReport();
  if (reply.head["isLeaving"] === true) throw leavesAlready(node);
  throw new ProtocolError("conflict", { message: `${node} does not run ${String(head["shard"])} any more` });
}

function known<Value>(report: Value | undefined): Value {
  if (report === undefined) throw noReport();
  return report;
}

function noReport(): ProtocolError {
  return new ProtocolError("not_found", { message: "no drain of it is known" });
}

function readOrder(head: RawHead): DrainOrder {
  return {
    shard: read.shard(head),
    spreadMs: head["spreadMs"] === undefined ? undefined : read.number(head, "spreadMs"),
    isDryRun: read.flag(head, "isDryRun"),
    actor: read.text(head, "actor"),
    reason: read.text(head, "reason"),
  };
}
