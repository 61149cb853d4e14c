// Two loads on a service's front door: handshakes one after the other, and hellos that are all wrong.
//
// Spec: L7, L25, L27, L28, L30.
// I1  Every wrong hello is wrong in one known way, and the ways take turns: none is left out by chance.
// I2  Both are open about what they got: every ending is counted by its code.

import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { createNodeRuntime, sleep } from "@moor/runtime";
import { WebSocket } from "ws";
import type { CrowdClient } from "./link-crowd.ts";
import { boxKeyOf, dialPlainApp, dialPlainBox, lookupLoopback, type PlainDialEnding } from "./link-plain.ts";

/** Boxes that dial, shake hands and leave, again and again. */
export interface HandshakesOrder {
  readonly endpoint: string;
  /** Boxes that take turns, so that none of their homes is told to slow down. */
  readonly clients: readonly Omit<CrowdClient, "client">[];
  /** Handshakes under way; at most as many as there are clients. */
  readonly atATime: number;
  readonly serviceKeys: readonly string[];
  readonly forMs: number;
  readonly ca?: string;
}

/** What they came to. */
export interface HandshakesDone {
  readonly done: number;
  readonly failed: number;
  readonly tookMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Hellos that are all wrong. */
export interface FloodOrder {
  readonly endpoint: string;
  /** Loopback addresses they come from, in turn. */
  readonly localAddresses: readonly string[];
  /** Homes that exist and homes that do not. */
  readonly homes: readonly string[];
  readonly perS: number;
  readonly forMs: number;
}

/** How they ended: `kind of hello: how it ended` with counts. */
export interface FloodDone {
  readonly sent: number;
  /** Wrong hellos that were let in. */
  readonly letIn: number;
  readonly endings: Readonly<Record<string, number>>;
}

const runtime = createNodeRuntime();

/** How often due hellos are sent. Milliseconds. */
const TICK_MS = 5;
/** Time a wrong hello gets to end after the flood. Milliseconds: above the 15 s of a handshake (L27). */
const LAST_ENDINGS_MS = 20_000;

/** Runs handshakes for the ordered time. */
export async function runHandshakes(order: HandshakesOrder): Promise<HandshakesDone> {
  const { endpoint, clients, atATime, serviceKeys, forMs, ca } = order;
  const tookMs: number[] = [];
  let failed = 0;
  const startMs = runtime.monotonicMs();
  /** Each of them has boxes of its own: one home never meets itself. */
  const shakeUntilEnd = async (_: unknown, at: number) => {
    const own = clients.filter((_client, index) => index % atATime === at);
    const keys = own.map(({ seed }) => boxKeyOf(seed));
    for (let turn = 0; runtime.monotonicMs() - startMs < forMs; turn += 1) {
      const home = own[turn % own.length]?.home ?? "";
      const key = keys[turn % keys.length] as KeyObject;
      const dialledAtMs = runtime.monotonicMs();
      const tls = ca === undefined ? {} : { ca };
      const ending = await dialPlainBox({ endpoint, home, key, serviceKeys, caps: ["shard"], ...tls });
      if (ending.kind === "online") {
        tookMs.push(runtime.monotonicMs() - dialledAtMs);
        ending.link.close();
        await ending.link.closed;
      } else {
        failed += 1;
        await sleep(runtime, TICK_MS);
      }
    }
  };
  await Promise.all(Array.from({ length: atATime }, shakeUntilEnd));
  tookMs.sort((one, other) => one - other);
  const at = (share: number) => Math.round((tookMs[Math.floor((tookMs.length - 1) * share)] ?? 0) * 10) / 10;
  const wholeMs = Math.round(runtime.monotonicMs() - startMs);
  return { done: tookMs.length, failed, tookMs: wholeMs, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** One wrong way to say hello. */
type WrongHello = (home: string, to: { endpoint: string; localAddress: string }) => Promise<PlainDialEnding>;

const strangerKey = generateKeyPairSync("ed25519").privateKey;
const wrongToken = `moor_app_${"A".repeat(43)}_AAAAAA`;

/** Every way, by its name. Signatures first: they cost the service most. */
export const WRONG_HELLOS: Readonly<Record<string, WrongHello>> = {
  "bad signature": (home, to) => dialPlainBox({ ...to, home, key: strangerKey }),
  "bad signature, follows": (home, to) => dialPlainBox({ ...to, home, key: strangerKey, caps: ["shard"] }),
  "unknown home": (home, to) => dialPlainBox({ ...to, home: `no-${home}`.slice(0, 60), key: strangerKey }),
  "wrong token": (home, to) => dialPlainApp({ ...to, home, token: `${home}.${wrongToken}`, app: "flood" }),
  "malformed token": (home, to) => dialPlainApp({ ...to, home, token: home, app: "flood" }),
  "nonce of wrong length": (home, to) =>
    dialPlainBox({ ...to, home, key: strangerKey, hello: { nonce: "AAAA" } }),
  "other version": (home, to) => dialPlainBox({ ...to, home, key: strangerKey, hello: { v: "1" } }),
  "home of wrong form": (home, to) => dialPlainBox({ ...to, home: `${home}!`, key: strangerKey }),
  "proof before hello": (home, to) => dialPlainBox({ ...to, home, key: strangerKey, hello: { t: "proof" } }),
  "not JSON": (_home, to) => dialRaw(to, "{"),
  binary: (_home, to) => dialRaw(to, Buffer.from([0, 1, 2])),
  "too large": (_home, to) => dialRaw(to, `{"t":"hello","pad":"${"x".repeat(80_000)}"}`),
};

/** Sends wrong hellos at the ordered rate, whatever becomes of them. */
export async function runFlood(order: FloodOrder): Promise<FloodDone> {
  const { endpoint, localAddresses, homes, perS, forMs } = order;
  const ways = Object.entries(WRONG_HELLOS);
  const endings: Record<string, number> = {};
  const open = new Set<Promise<void>>();
  let sent = 0;
  let letIn = 0;
  const sendOne = () => {
    const at = sent;
    sent += 1;
    const [name, say] = ways[at % ways.length] as [string, WrongHello];
    const turn = Math.floor(at / ways.length) + at;
    const localAddress = localAddresses[turn % localAddresses.length] ?? "127.0.0.1";
    const ended: Promise<void> = say(homes[turn % homes.length] ?? "", { endpoint, localAddress }).then(
      (ending) => {
        if (ending.kind === "online") {
          letIn += 1;
          ending.link.destroy();
        }
        const how = `${name}: ${describe(ending)}`;
        endings[how] = (endings[how] ?? 0) + 1;
        open.delete(ended);
      },
    );
    open.add(ended);
  };
  const startMs = runtime.monotonicMs();
  while (runtime.monotonicMs() - startMs < forMs) {
    await sleep(runtime, TICK_MS);
    const due = Math.ceil((Math.min(runtime.monotonicMs() - startMs, forMs) * perS) / 1000);
    for (let left = due - sent; left > 0; left -= 1) sendOne();
  }
  await Promise.race([Promise.all(open), sleep(runtime, LAST_ENDINGS_MS)]);
  if (open.size > 0) endings["never ended"] = open.size;
  return { sent, letIn, endings };
}

/** One frame as it stands, on a socket of its own. */
function dialRaw(
  { endpoint, localAddress }: { endpoint: string; localAddress: string },
  frame: string | Buffer,
): Promise<PlainDialEnding> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${endpoint}/v1/box`, {
      perMessageDeflate: false,
      localAddress,
      // As the others: the system's resolver would queue them up, and does not know every name under .localhost.
      lookup: lookupLoopback,
    });
    socket.on("open", () => socket.send(frame));
    socket.on("unexpected-response", (request, response) => {
      request.destroy();
      resolve({ kind: "refused", status: response.statusCode ?? 0 });
    });
    let fault = "";
    socket.on("error", (error: Error & { readonly code?: string }) => {
      fault = error.code ?? error.name;
    });
    socket.on("close", (code, reason) => {
      resolve(fault === "" ? { kind: "closed", code, reason: reason.toString() } : { kind: "failed", fault });
    });
  });
}

function describe(ending: PlainDialEnding): string {
  switch (ending.kind) {
    case "online":
      return "let in";
    case "closed":
      return String(ending.code);
    case "refused":
      return `HTTP ${ending.status}`;
    case "failed":
      return ending.fault;
  }
}
