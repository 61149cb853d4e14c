// `POST /v1/enroll`: a box shows its code and its public key, and becomes its home's.
//
// Spec: L28 (keys). Not for pages: no CORS headers.
// I1  Every failure is the same 401: a code that is wrong, used, expired or ended, and a key that is none.
// I2  Tries are counted by client address before a byte of the body is read.

import { isProtocolError, ProtocolError } from "@moor/protocol";
import type { BlockList } from "node:net";
import type { Directory } from "../../directory/directory.ts";
import { JSON_TYPE, NO_STORE, type HttpExchange } from "../../http/http-exchange.ts";
import { refuse, type Refusal } from "../../http/reply-error.ts";
import { clientAddress } from "../client-address.ts";
import type { LinkContext } from "./link-context.ts";
import { ENROLL_BODY_BYTES_MAX } from "./link-limits.ts";
import { parsePublicKey } from "./proof-verifier.ts";
import type { RateBuckets } from "./rate-buckets.ts";

export interface EnrollGate {
  readonly context: LinkContext;
  readonly directory: Pick<Directory, "redeemEnrolment">;
  readonly proxies: BlockList;
  /** Tries by client address. */
  readonly allowances: RateBuckets<string>;
}

/** Serves an enrolment: answers it, or says why not. */
export async function handleEnroll(gate: EnrollGate, exchange: HttpExchange): Promise<Refusal | undefined> {
  const { context, allowances, proxies, directory } = gate;
  if (context.hosts.find(exchange.header("host") ?? "", exchange.isLoopbackListener) === undefined) {
    return refuse("wrong_shard", "nothing here is known by that Host");
  }
  const address = clientAddress(exchange.remoteAddress, exchange.headerLines("x-forwarded-for"), proxies);
  const waitMs = allowances.take(address, context.runtime.monotonicMs());
  if (waitMs > 0) return refuse("rate_limit_exceeded", undefined, { retryAfterS: waitMs / 1000 });
  const body = await exchange.readBody(ENROLL_BODY_BYTES_MAX);
  if (body.kind === "gone") return undefined;
  if (body.kind === "too-large") return refuse("request_body_too_large");
  const wanted = parseEnrolment(body.bytes);
  if (wanted === undefined) return refuse("enrolment_refused");
  const outcome = await redeem(directory, wanted);
  if (outcome.kind === "refused") return outcome;
  const { home, serviceKeys } = outcome;
  context.logger.info("box-enrolled", { home });
  exchange.reply(200, { ...NO_STORE, ...JSON_TYPE }, JSON.stringify({ home, serviceKeys }));
  return undefined;
}

async function redeem(
  directory: EnrollGate["directory"],
  { code, publicKey }: Enrolment,
): Promise<
  Refusal | { readonly kind: "ok"; readonly home: string; readonly serviceKeys: readonly string[] }
> {
  try {
    const outcome = await directory.redeemEnrolment(code, publicKey);
    return outcome.kind === "ok" ? outcome : refuse("enrolment_refused");
  } catch (error) {
    if (!isProtocolError(error)) throw error;
    return { kind: "refused", error: new ProtocolError(error.code, retryOf(error)) };
  }
}

/** What failed at the directory is not told in its words. */
function retryOf({ retryAfterS }: ProtocolError): { readonly retryAfterS?: number } {
  return retryAfterS === undefined ? {} : { retryAfterS };
}

interface Enrolment {
  readonly code: string;
  readonly publicKey: string;
}

function parseEnrolment(body: Uint8Array): Enrolment | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { code, publicKey } = value as Readonly<Record<string, unknown>>;
  if (typeof code !== "string" || typeof publicKey !== "string") return undefined;
  const isKey = /^[0-9A-Za-z_-]{43}$/.test(publicKey) && parsePublicKey(publicKey) !== undefined;
  return isKey ? { code, publicKey } : undefined;
}
