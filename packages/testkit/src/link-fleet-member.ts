// The program of one process of a link fleet. It reads orders from its standard input, one JSON object a line, and
// answers each with one line that carries the order's number.
//
// I1  A key is read from standard input and is nowhere else: not in arguments, environment or output.

import { createInterface } from "node:readline";
import { makeBareMember, makePlainMember, startCrowd, type Crowd, type MemberFactory } from "./link-crowd.ts";
import type { CrowdKind } from "./link-crowd.ts";
import type { FleetAnswer, FleetOrder } from "./link-fleet-orders.ts";
import { runFlood, runHandshakes } from "./link-load.ts";

const crowds = new Map<number, Crowd>();
let crowdCount = 0;

/** The client library is loaded only where it is used: its memory is not the yardstick's. */
const FACTORIES: Readonly<Record<CrowdKind, () => Promise<MemberFactory>>> = {
  library: async () => (await import("./link-library-member.ts")).makeLibraryMember,
  plain: () => Promise.resolve(makePlainMember),
  bare: () => Promise.resolve(makeBareMember),
};

async function obey(order: FleetOrder): Promise<FleetAnswer> {
  switch (order.do) {
    case "start":
      crowdCount += 1;
      crowds.set(crowdCount, startCrowd(order.crowd, await FACTORIES[order.crowd.kind]()));
      return { kind: "started", crowd: crowdCount };
    case "shake":
      return { kind: "shaken", done: await runHandshakes(order.handshakes) };
    case "flood":
      return { kind: "flooded", done: await runFlood(order.flood) };
    case "count":
    case "journal":
    case "stop":
      return obeyCrowd(order);
  }
}

async function obeyCrowd(
  order: Extract<FleetOrder, { readonly do: "count" | "journal" | "stop" }>,
): Promise<FleetAnswer> {
  const crowd = crowds.get(order.crowd);
  if (crowd === undefined) throw new Error(`no crowd ${order.crowd}`);
  switch (order.do) {
    case "count":
      return { kind: "counted", online: crowd.onlineCount };
    case "journal":
      return { kind: "journal", events: crowd.events };
    case "stop":
      await crowd.stop();
      return { kind: "stopped" };
  }
}

function answer(order: number, text: FleetAnswer): void {
  process.stdout.write(`${JSON.stringify({ order, answer: text })}\n`);
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { order, what } = JSON.parse(line) as { readonly order: number; readonly what: FleetOrder };
  obey(what).then(
    (text) => answer(order, text),
    (error: unknown) =>
      answer(order, { kind: "failed", why: error instanceof Error ? error.message : String(error) }),
  );
});
