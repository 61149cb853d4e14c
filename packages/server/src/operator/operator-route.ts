// What the groups of operator routes share: request, answer, route, who ordered it, the audit line.
//
// Spec: T1, T3.
// I1  Every change leaves an audit line with its actor, without secrets; a refused one leaves none.

import { ProtocolError, type HomeId } from "@moor/protocol";
import type { LogFields, Logger, Runtime } from "@moor/runtime";
import {
  isDirectoryAway,
  type Directory,
  type Order,
  type PageRequest,
  type Replica,
} from "../directory/directory.ts";
import { PAGE_LIMIT_DEFAULT } from "../directory/page.ts";
import type { DrainDesk } from "../drains/drain-desk.ts";
import type { LeaseWatch } from "../liveness/lease-watch.ts";
import type { Mover, TimelineSource } from "../moves/mover.ts";
import type { HomeStatus } from "../peer/link-ports.ts";
import type { Metrics } from "./metrics.ts";
import type { JsonObject } from "./operator-json.ts";

/** An authorised request. */
export interface OperatorRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The whole body; empty when there is none. */
  readonly body: Uint8Array;
  readonly requestId: string;
  /** Who asks, as X-Moor-Actor says: readActor. */
  readonly actor: string;
}

/** The success answer to one. */
export interface OperatorAnswer {
  readonly status: 200 | 201;
  readonly json: JsonObject;
}

/** Answers a request; `id` is the path's variable part, or empty. Rejects with ProtocolError. */
export type Handler = (request: OperatorRequest, id: string) => Promise<OperatorAnswer> | OperatorAnswer;

/** A path with its methods. */
export interface Route {
  readonly path: RegExp;
  readonly methods: Readonly<Record<string, Handler>>;
}

/** What the API works on. */
export interface OperatorApiOptions {
  readonly directory: Directory;
  readonly replica: Replica;
  readonly mover: Mover;
  readonly drains: DrainDesk;
  readonly timeline: TimelineSource;
  /** Asks a home's owner how its links are now; undefined when that does not answer. */
  readonly homeStatus: (home: HomeId) => Promise<HomeStatus | undefined>;
  readonly leases: Pick<LeaseWatch, "ageMs" | "isLate">;
  readonly metrics: Pick<Metrics, "directoryMutations">;
  readonly runtime: Pick<Runtime, "wallMs">;
  readonly logger: Logger;
  /** The endpoint that agents and callers reach, e.g. `http://127.0.0.1:8080`. */
  readonly publicUrl: () => string;
}

/** Actor of a request that names none: whoever holds the operator token. */
const ACTOR_DEFAULT = "operator";

/** Who asks: the value of X-Moor-Actor, 1–128 printable ASCII characters, else `operator`. Throws `invalid_request`. */
export function readActor(header: string | undefined): string {
  if (header === undefined) return ACTOR_DEFAULT;
  if (/^[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?$/.test(header)) return header;
  const message = "X-Moor-Actor has 1 to 128 printable ASCII characters";
  throw new ProtocolError("invalid_request", { param: "X-Moor-Actor", message });
}

/** 200 with `json`. */
export function ok(json: JsonObject): OperatorAnswer {
  return { status: 200, json };
}

/** The page a query asks for. */
export function readPage(query: URLSearchParams): PageRequest {
  const text = query.get("limit") ?? String(PAGE_LIMIT_DEFAULT);
  // Anything but digits becomes a limit that the list itself refuses.
  const limit = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  const after = query.get("after");
  return after === null ? { limit } : { limit, after };
}

/** Who orders a change, and why, as the directory keeps it. */
export function orderOf({ actor }: OperatorRequest, reason: string | undefined): Order {
  return reason === undefined ? { actor } : { actor, reason };
}

/** Counts what becomes of a change asked of the directory. */
export async function change<Value>(options: OperatorApiOptions, mutation: Promise<Value>): Promise<Value> {
  const { directoryMutations } = options.metrics;
  try {
    const value = await mutation;
    directoryMutations.inc("committed");
    return value;
  } catch (error) {
    directoryMutations.inc(isDirectoryAway(error) ? "unavailable" : "refused");
    throw error;
  }
}

/** The audit line of a change that was made (I1). */
export function audit(
  options: OperatorApiOptions,
  event: string,
  request: OperatorRequest,
  fields: LogFields,
): void {
  options.logger.info(event, { ...fields, actor: request.actor, requestId: request.requestId });
}
