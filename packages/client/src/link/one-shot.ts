// One-shots: a command or a look at the snapshot without a link, and the one redirect they may follow.
//
// Spec: L2, L3, L19, L20, L33, L34.
// I1  At most two requests: a second 421, or a 421 without exactly one host that may be followed, is the caller's error.
// I2  The token goes to the base and to hosts that pass L4 only; it is in no error, log or URL.
// I3  What was learned from a 421 is forgotten with its request. I4  A request that may have left is never sent again.

import {
  HEADER,
  LINK_DATA_BYTES_MAX,
  LINK_PATH,
  parseCommandId,
  parseRetryAfter,
  scanJson,
  shardHostOk,
  STATUS_WRONG_SHARD,
  troubleOfUpgrade,
  type LinkTrouble,
} from "@moor/protocol";
import type { Runtime, Secret } from "@moor/runtime/portable";
import { oneShotUrl, type LinkEndpoint } from "./link-endpoint.ts";
import type { OneShotAnswer, OneShotHttp, OneShotRequest } from "./one-shot-http.ts";
import { jsonTextOf, RawJson, utf8ByteCount } from "./raw-json.ts";

/** Why the service refuses a one-shot: the token; two shards that name each other, or a host that may not be followed; the
 *  request itself. */
export type OneShotRefusal = "auth" | "wrong-shard" | "bad-request";

/** No answer that says anything of the command or snapshot. */
export type OneShotFailure =
  | { readonly kind: "refused"; readonly why: OneShotRefusal }
  /** Certainly nothing was acted on. */
  | { readonly kind: "unreachable"; readonly why: LinkTrouble };

/** What came of a command. */
export type OnceEnding =
  | { readonly kind: "result"; readonly data: RawJson }
  | { readonly kind: "not_delivered"; readonly retryAfterMs: number | undefined }
  | { readonly kind: "unknown" }
  | { readonly kind: "expired" }
  | OneShotFailure;

/** What came of a look. */
export type NowEnding =
  | {
      readonly kind: "snapshot";
      readonly data: RawJson;
      /** Since the box told it, milliseconds; undefined where the service does not say. */
      readonly ageMs: number | undefined;
      /** For `ifNoneMatch` next time. */
      readonly etag: string | undefined;
    }
  | { readonly kind: "not-modified" }
  /** The home has no snapshot. */
  | { readonly kind: "unavailable" }
  | OneShotFailure;

/** A command for `once`. */
export interface OnceRequest {
  /** 1–64 of `[0-9A-Za-z_-]`. */
  readonly id: string;
  /** Milliseconds to live. */
  readonly ttlMs: number;
  /** Any JSON value, or a RawJson; at most 64 KiB. */
  readonly data: unknown;
}

/** What one-shots work with. */
export interface OneShotPorts {
  readonly runtime: Runtime;
  readonly http: OneShotHttp;
  readonly endpoint: LinkEndpoint;
  /** Host of this client's live link, where requests start; undefined: base. */
  liveHost(): string | undefined;
}

/** Time beyond its ttl that a command's answer gets, milliseconds: for the way there and back. */
const ONCE_SLACK_MS = 10_000;
/** Time a look gets, milliseconds. */
const NOW_DEADLINE_MS = 15_000;

/**
 * Sends one command and waits for its ending (L33). Ask again with the same id when it is `unknown`.
 *
 * Throws RangeError for an id, ttl or data out of bounds, TypeError for what JSON cannot say.
 */
export async function sendOnce(ports: OneShotPorts, token: Secret, once: OnceRequest): Promise<OnceEnding> {
  const { id, ttlMs } = once;
  const answer = await request(ports, token, {
    method: "POST",
    path: LINK_PATH.once,
    headers: [[HEADER.contentType, "application/json"]],
    body: `{"id":"${id}","ttl_ms":${ttlMs},"data":${commandData(once)}}`,
    deadlineMs: ttlMs + ONCE_SLACK_MS,
  });
  if (answer.kind === "fault") {
    return answer.wasWritten ? { kind: "unknown" } : { kind: "unreachable", why: answer.trouble };
  }
  return onceEnding(answer, ports.runtime);
}

/** Looks at the home's snapshot (L34). `token` is an extension token. */
export async function lookNow(ports: OneShotPorts, token: Secret, ifNoneMatch?: string): Promise<NowEnding> {
  const answer = await request(ports, token, {
    method: "GET",
    path: LINK_PATH.now,
    headers: ifNoneMatch === undefined ? [] : [["If-None-Match", ifNoneMatch]],
    deadlineMs: NOW_DEADLINE_MS,
  });
  if (answer.kind === "fault") return { kind: "unreachable", why: answer.trouble };
  return nowEnding(answer);
}

/**
 * The JSON text of a command's data.
 *
 * Throws RangeError for an id, ttl or data out of bounds, TypeError for what JSON cannot say.
 */
export function commandData({ id, ttlMs, data }: OnceRequest): string {
  if (parseCommandId(id) === undefined) throw new RangeError("id: 1–64 characters of 0–9, A–Z, a–z, _ and -");
  if (!Number.isSafeInteger(ttlMs) || ttlMs < 0) throw new RangeError("ttlMs: a whole number from 0");
  const text = jsonTextOf(data);
  if (utf8ByteCount(text) > LINK_DATA_BYTES_MAX) throw new RangeError("data: at most 64 KiB");
  return text;
}

type Answered = Extract<OneShotAnswer, { readonly kind: "answer" }>;
type Route = Omit<OneShotRequest, "url"> & { readonly path: string };

/** One request, and once more where a 421 names the host to ask (L19). */
async function request(ports: OneShotPorts, token: Secret, route: Route): Promise<OneShotAnswer> {
  const { endpoint, http } = ports;
  const headers = [[HEADER.authorization, `Bearer ${token.reveal()}`] as const, ...route.headers];
  const ask = (host: string) =>
    http.request({ ...route, headers, url: oneShotUrl(endpoint, host, route.path) });
  const asked = ports.liveHost() ?? endpoint.base;
  const answer = await ask(asked);
  const named = answer.kind === "answer" ? namedHost(answer, asked, endpoint.base) : undefined;
  return named === undefined ? answer : ask(named);
}

/** The host that a 421 names, if there is exactly one and it may be followed. */
function namedHost(answer: Answered, asked: string, base: string): string | undefined {
  if (answer.status !== STATUS_WRONG_SHARD) return undefined;
  const [host, ...others] = valuesOf(answer, HEADER.ftwShard);
  const isGood = host !== undefined && others.length === 0 && host !== asked && shardHostOk(host, base);
  return isGood ? host : undefined;
}

function onceEnding(answer: Answered, runtime: Runtime): OnceEnding {
  switch (answer.status) {
    case 200: {
      const data = dataMember(answer.body);
      // It was acted on, and what came of it cannot be read.
      return data === undefined ? { kind: "unknown" } : { kind: "result", data };
    }
    case 410:
      return { kind: "expired" };
    case 429:
      return { kind: "not_delivered", retryAfterMs: retryAfterMs(answer, runtime) };
    case 503:
      // Every 503 of ours says when to come back; a gateway's own may stand for anything.
      return valuesOf(answer, HEADER.retryAfter).length === 0
        ? { kind: "unknown" }
        : { kind: "not_delivered", retryAfterMs: retryAfterMs(answer, runtime) };
    default:
      // 502, 504 and whatever a gateway on the way makes of an answer: it may have been acted on.
      return answer.status >= 500 ? { kind: "unknown" } : refusal(answer.status);
  }
}

function nowEnding(answer: Answered): NowEnding {
  const { status, body } = answer;
  switch (status) {
    case 200: {
      const [age] = valuesOf(answer, "age");
      const [etag] = valuesOf(answer, "etag");
      const data = rawJson(body);
      if (data === undefined) return { kind: "unreachable", why: "not-a-link" };
      const ageMs = age !== undefined && /^[0-9]{1,10}$/.test(age) ? Number(age) * 1_000 : undefined;
      return { kind: "snapshot", data, ageMs, etag };
    }
    case 304:
      return { kind: "not-modified" };
    case 404:
      return { kind: "unavailable" };
    default:
      return status >= 500 || status === 429 ? { kind: "unreachable", why: "unavailable" } : refusal(status);
  }
}

/** 3xx, other 2xx and the like come from something that is no Moor. */
function refusal(status: number): OneShotFailure {
  switch (status) {
    case 401:
    case 403:
      return { kind: "refused", why: "auth" };
    case STATUS_WRONG_SHARD:
      return { kind: "refused", why: "wrong-shard" };
    case 400:
    case 413:
    case 415:
      return { kind: "refused", why: "bad-request" };
    default:
      return { kind: "unreachable", why: troubleOfUpgrade(status) };
  }
}

function retryAfterMs(answer: Answered, runtime: Runtime): number | undefined {
  const [answerDate] = valuesOf(answer, HEADER.date);
  const [value] = valuesOf(answer, HEADER.retryAfter);
  return parseRetryAfter(value, { answerDate, wallMs: runtime.wallMs() });
}

function valuesOf({ headers }: Answered, name: string): string[] {
  const wanted = name.toLowerCase();
  return headers.filter(([given]) => given.toLowerCase() === wanted).map(([, value]) => value);
}

/** The `data` of a result, byte for byte. */
function dataMember(body: string): RawJson | undefined {
  const bytes = new TextEncoder().encode(body);
  const scan = scanJson(bytes, { depthMax: LINK_DATA_BYTES_MAX });
  const found = scan.ok ? scan.members.filter(({ key }) => key === "data") : [];
  const [member] = found;
  if (member === undefined || found.length > 1) return undefined;
  return new RawJson(new TextDecoder().decode(bytes.subarray(member.value.start, member.value.end)));
}

function rawJson(text: string): RawJson | undefined {
  try {
    return new RawJson(text);
  } catch {
    return undefined;
  }
}
