// The operator listener: HTTP on a loopback address for administration, metrics and health.
//
// Spec: T1–T3. Design: "Listeners".
// I1  Everything but /healthz and /readyz needs the operator token; nothing is served to a foreign Host or Origin.
// I2  Every error is the T3 envelope, every answer carries X-Request-Id, no answer is a redirect.
// I3  Nothing of a request is read before its Host, Origin and token are judged.

import { isProtocolError, ProtocolError } from "@moor/protocol";
import type { Runtime, Secret } from "@moor/runtime";
import { JSON_TYPE, NO_STORE, type HttpExchange, type ReplyHeaders } from "../http/http-exchange.ts";
import { openHttpListener, type HttpListener } from "../http/http-listener.ts";
import { replyError } from "../http/reply-error.ts";
import type { Metrics, StatusClass } from "./metrics.ts";
import { OperatorApi } from "./operator-api.ts";
import { createOperatorGuard, type OperatorGuard } from "./operator-guard.ts";
import { readActor, type OperatorApiOptions } from "./operator-route.ts";

/** Largest body of an operator request, bytes: the longest name, description and label fit ten times over. */
const BODY_BYTES_MAX = 64 * 1024;

/** What an operator listener needs. */
export interface OperatorListenerOptions extends OperatorApiOptions {
  readonly metrics: Pick<Metrics, "registry" | "operatorRequests" | "directoryMutations">;
  readonly token: Secret;
  readonly runtime: Runtime;
  /** Whether the node is ready and not leaving: what /readyz says. Default: always. */
  readonly isReady?: () => boolean;
  /** Setting to name when the port cannot be had. Default `--operator-port`. */
  readonly portOption?: string;
}

/** A listener that is started once and closed once. */
export interface OperatorListener {
  /** Starts serving; port 0 = any free one. Throws ConfigError for `portOption` when it cannot be had. */
  listen(host: string, port: number): Promise<{ readonly port: number }>;
  /** Stops accepting and closes every connection. */
  close(): Promise<void>;
}

/** What is said when nothing went wrong. */
interface Answer {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly body: string;
}

interface Serving {
  readonly options: OperatorListenerOptions;
  readonly api: OperatorApi;
  readonly guard: OperatorGuard;
}

/** An operator listener, not yet listening. */
export function createOperatorListener(options: OperatorListenerOptions): OperatorListener {
  const { runtime, logger } = options;
  const api = new OperatorApi(options);
  let listener: HttpListener | undefined;
  return {
    listen: async (host, port) => {
      const serving = { options, api, guard: createOperatorGuard(options.token, host) };
      listener = await openHttpListener({
        host,
        port,
        portOption: options.portOption ?? "--operator-port",
        runtime,
        logger,
        isLeaving: () => false,
        handle: (exchange) => handleOperatorExchange(exchange, serving),
      });
      return { port: listener.port };
    },
    close: async () => {
      await listener?.close();
    },
  };
}

async function handleOperatorExchange(exchange: HttpExchange, serving: Serving): Promise<void> {
  const { operatorRequests } = serving.options.metrics;
  const count = (status: number) => operatorRequests.inc(`${Math.trunc(status / 100)}xx` as StatusClass);
  try {
    const answer = await answerTo(exchange, serving);
    count(answer.status);
    exchange.reply(answer.status, { ...NO_STORE, ...answer.headers }, answer.body);
  } catch (error) {
    count(isProtocolError(error) ? error.status : 500);
    if (!isProtocolError(error)) throw error;
    replyError(exchange, error, errorHeaders(error));
  }
}

/** The answer; throws ProtocolError for a refusal. */
async function answerTo(exchange: HttpExchange, { options, api, guard }: Serving): Promise<Answer> {
  const { method, path } = exchange;
  const credentials = {
    host: exchange.header("host"),
    origin: exchange.header("origin"),
    authorization: exchange.header("authorization"),
  };
  guard.assertSource(credentials);
  if (path === "/healthz" || path === "/readyz") {
    assertMethod(method, ["GET", "HEAD"]);
    return healthAnswer(path, options.isReady ?? (() => true));
  }
  guard.assertToken(credentials);
  if (path === "/metrics") {
    assertMethod(method, ["GET", "HEAD"]);
    const { registry } = options.metrics;
    return { status: 200, headers: { "Content-Type": registry.contentType }, body: await registry.metrics() };
  }
  const methods = api.methodsAt(path);
  if (methods === undefined) throw new ProtocolError("not_found");
  assertMethod(method, methods);
  const body = await readJsonBody(exchange);
  const query = new URLSearchParams(exchange.query);
  const actor = readActor(exchange.header("x-moor-actor"));
  const { requestId } = exchange;
  const { status, json } = await api.run({ method, path, query, body, requestId, actor });
  return { status, headers: JSON_TYPE, body: `${JSON.stringify(json)}\n` };
}

function healthAnswer(path: string, isReady: () => boolean): Answer {
  if (path === "/readyz" && !isReady()) throw new ProtocolError("node_draining", { message: "not ready" });
  return { status: 200, headers: JSON_TYPE, body: '{"status":"ok"}\n' };
}

function assertMethod(method: string, allowed: readonly string[]): void {
  if (allowed.includes(method)) return;
  throw new ProtocolError("method_not_allowed", { data: { allow: allowed.join(", ") } });
}

async function readJsonBody(exchange: HttpExchange): Promise<Uint8Array> {
  const body = await exchange.readBody(BODY_BYTES_MAX);
  switch (body.kind) {
    case "too-large":
      throw new ProtocolError("request_body_too_large");
    case "gone":
      throw new ProtocolError("invalid_request", { message: "the body ended early" });
    case "complete":
      break;
  }
  const type = exchange.header("content-type") ?? "";
  const encoding = (exchange.header("content-encoding") ?? "identity").toLowerCase();
  const isPlainJson = /^application\/json *(;|$)/i.test(type) && encoding === "identity";
  if (body.bytes.length > 0 && !isPlainJson) throw new ProtocolError("unsupported_media_type");
  return body.bytes;
}

function errorHeaders(error: ProtocolError): ReplyHeaders {
  if (error.code === "unauthorized") return { "WWW-Authenticate": "Bearer" };
  const allow = error.data?.["allow"];
  return typeof allow === "string" ? { Allow: allow } : {};
}
