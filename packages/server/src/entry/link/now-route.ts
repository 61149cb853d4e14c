// `GET /v1/now`: the snapshot a home's box left at its shard.
//
// Spec: L34; L2 for where it is answered.
// I1  304 answers only a request that named the snapshot it has.
// I2  A shard that is not the owner is followed OWNER_HOPS_MAX times at most.

import type { HomeId } from "@moor/protocol";
import { JSON_TYPE, type HttpExchange } from "../../http/http-exchange.ts";
import { refuse, type Refusal } from "../../http/reply-error.ts";
import type { NowOutcome } from "../../peer/link-ports.ts";
import { OWNER_HOPS_MAX } from "../../server-limits.ts";
import { admitRequest, checkRoute, ownerUnavailable, type RequestGate } from "./home-request.ts";
import { linkCorsHeaders } from "./link-cors.ts";
import type { LinkContext } from "./link-context.ts";
import { SHARD_ANSWER_WAIT_MS } from "./link-limits.ts";

/** A snapshot as it is answered. */
export interface Snapshot {
  readonly kind: "snapshot";
  /** Raw JSON. */
  readonly data: string;
  readonly ageMs: number;
  /** With its quotes. */
  readonly etag: string;
}

/** Reads the snapshot of the token's home. */
export async function readSnapshot(gate: RequestGate, exchange: HttpExchange): Promise<Snapshot | Refusal> {
  const admitted = admitRequest(gate, exchange, "extension");
  if (admitted.kind === "refused") return admitted;
  const { context } = gate;
  const { home, dialled } = admitted;
  for (let hop = 0; hop <= OWNER_HOPS_MAX; hop += 1) {
    const outcome = await askOwner(context, home);
    switch (outcome.kind) {
      case "snapshot":
        return { ...outcome, etag: `"${outcome.etag}"` };
      case "none":
        return refuse("now_unavailable");
      case "unavailable":
        return ownerUnavailable();
      case "not-owner": {
        const { placement } = outcome;
        if (placement === undefined || !context.placements.learn(home, placement)) return ownerUnavailable();
        const moved = checkRoute(context, home, dialled);
        if (moved !== undefined) return moved;
      }
    }
  }
  return ownerUnavailable();
}

/** Answers with a snapshot, or with 304 when the client has it. */
export function replySnapshot(exchange: HttpExchange, { data, ageMs, etag }: Snapshot): 200 | 304 {
  const headers = {
    ...linkCorsHeaders(exchange),
    "Cache-Control": "private, no-cache",
    Age: String(Math.max(0, Math.floor(ageMs / 1000))),
    ETag: etag,
  };
  const status = isNamed(exchange.header("if-none-match"), etag) ? 304 : 200;
  if (status === 304) exchange.reply(304, headers);
  else exchange.reply(200, { ...headers, ...JSON_TYPE }, data);
  return status;
}

/** Asks the owner as it is known now; one that says nothing in time is as one out of reach. */
function askOwner(context: LinkContext, home: HomeId): Promise<NowOutcome> {
  const { placements, shardPort, runtime } = context;
  const placement = placements.best(home);
  const port = placement === undefined ? undefined : shardPort(placement.shard);
  if (placement === undefined || port === undefined) return Promise.resolve({ kind: "unavailable" });
  return new Promise((resolve) => {
    const timer = runtime.schedule(SHARD_ANSWER_WAIT_MS, () => resolve({ kind: "unavailable" }));
    port.readNow(home, placement, (outcome) => {
      runtime.cancel(timer);
      resolve(outcome);
    });
  });
}

/** Weak comparison over a list, RFC 9110, 13.1.2. */
function isNamed(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false;
  return field.split(",").some((named) => {
    const tag = named.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}
