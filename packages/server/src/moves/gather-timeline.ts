// The timeline of a tenant over all nodes: what each remembers, in one order.
//
// Design "Moves" (`moor why`). A node that does not answer in time is named, not waited for.

import type { RawHead } from "../peer/peer-messages.ts";
import { read } from "../peer/peer-messages.ts";
import type { Reply } from "../peer/peer-requests.ts";
import type { TimelineEvent, TimelineSource } from "./mover.ts";
import type { Timeline } from "./timeline.ts";

export interface GatherOptions {
  readonly selfNode: string;
  readonly own: Timeline;
  /** Ids of the nodes that are part of the residency now. */
  readonly nodes: () => readonly string[];
  readonly ask: (nodeId: string, head: RawHead) => Promise<Reply>;
}

/** Asks every node. */
export async function gatherTimeline(
  tenant: string,
  options: GatherOptions,
): ReturnType<TimelineSource["timeline"]> {
  const others = options.nodes().filter((node) => node !== options.selfNode);
  const replies = await Promise.all(
    others.map(async (node) => ({ node, reply: await options.ask(node, { t: "timeline", tenant }) })),
  );
  const own = options.own
    .of(tenant)
    .map(({ atMs, event, detail }): TimelineEvent => ({ atMs, node: options.selfNode, event, detail }));
  const events = replies.flatMap(({ node, reply }) =>
    reply === undefined ? [] : readEvents(node, reply.head),
  );
  return {
    events: [...own, ...events].sort((left, right) => left.atMs - right.atMs),
    unreached: replies.filter(({ reply }) => reply === undefined).map(({ node }) => node),
  };
}

function readEvents(node: string, head: RawHead): readonly TimelineEvent[] {
  return read.list(head, "events").map((item) => {
    const event = read.object({ item }, "item");
    const atMs = read.number(event, "atMs");
    return { atMs, node, event: read.text(event, "event"), detail: read.text(event, "detail") };
  });
}
