// The agent's three kinds of request to its service, each one HTTP attempt over kept-alive connections.
//
// Spec: R1, R6, R10, R18, R20, T4, T6, T16.
// I1  A polling token goes with polls only, a command's token with that command's responses only (R20).
// I2  Nothing here retries, follows a redirect or reads a URL a server sent (R17, R18).
// I3  Polls are never dumped, not even with unsafe raw logging (R8).

import {
  CORRECTION_BODY_BYTES_MAX,
  HEADER,
  POLL_BODY_BYTES_MAX,
  RESPONSE_HEAD_BYTES_MAX,
  type InstanceId,
} from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import { Client, Pool } from "undici";
import type { AgentSettings } from "./agent-options.ts";
import { controlHeaders } from "./control-headers.ts";
import { collectAnswer, type CollectedAnswer } from "./http/collect-answer.ts";
import type { ExchangeRequest } from "./http/exchange.ts";
import { utf8AsHeaderValue } from "./http/header-lines.ts";
import type { RawDump } from "./raw-dump.ts";

/** One poll. */
export interface PollRequest {
  /** Commands wanted, 1–25. */
  readonly limit: number;
  /** Wait asked for, milliseconds. */
  readonly waitMs: number;
  /** Milliseconds from now after which the poll is given up. */
  readonly deadlineMs: number;
  /** Active polling token; undefined for a tokenless poll (R10). */
  readonly token: string | undefined;
}

/** One response or notification, already encoded. */
export interface ResponseRequest {
  /** The command's own token (R20). */
  readonly token: string;
  readonly body: Uint8Array;
  /** Milliseconds from now after which the attempt is given up. */
  readonly deadlineMs: number;
}

/** The service as the agent sees it. Promises never reject. */
export interface ControlPlane {
  poll(request: PollRequest, signal: AbortSignal): Promise<CollectedAnswer>;
  respond(request: ResponseRequest, signal: AbortSignal): Promise<CollectedAnswer>;
  /** Closes all connections at once. */
  close(): Promise<void>;
}

/** Largest answer to a response the agent reads: `{"status":"ok"}` or an error envelope. Bytes. */
const RESPONSE_ANSWER_BYTES_MAX = CORRECTION_BODY_BYTES_MAX;

const CONNECTION_OPTIONS = {
  allowH2: false,
  headersTimeout: 0,
  bodyTimeout: 0,
  // undici refuses a head that reaches its limit; R6 wants 64 KiB itself to pass.
  maxHeaderSize: RESPONSE_HEAD_BYTES_MAX + 1,
} as const;

/** The service behind `settings.endpoint`, over real sockets. */
export function createControlPlane(
  settings: AgentSettings,
  instanceId: InstanceId,
  runtime: Runtime,
  dump: RawDump | undefined,
): ControlPlane {
  const headers = controlHeaders(settings, instanceId);
  const basePath = `${settings.endpoint.basePath}/v1/tunnels/${settings.tunnel}`;
  const channelQuery = settings.channels.map(({ name }) => `&channel=${name}`).join("");
  const pool = new Pool(settings.endpoint.origin, CONNECTION_OPTIONS);
  // A pool opens a second connection when a poll follows the last one at once; a client of its own keeps to one.
  const pollConnection = new Client(settings.endpoint.origin, CONNECTION_OPTIONS);
  let pollsInFlight = 0;
  return {
    poll: async ({ limit, waitMs, deadlineMs, token }, signal) => {
      const request: ExchangeRequest = {
        method: "GET",
        path: `${basePath}/poll?limit=${limit}&timeout_ms=${waitMs}${channelQuery}`,
        headers: token === undefined ? headers : [...headers, [HEADER.shardToken, token]],
      };
      const dispatcher = pollsInFlight === 0 ? pollConnection : pool;
      pollsInFlight += 1;
      const limits = { deadlineMs, bodyBytesMax: pollBodyBytesMax };
      const answer = await collectAnswer(runtime, dispatcher, request, limits, signal);
      pollsInFlight -= 1;
      return answer;
    },
    respond: ({ token, body, deadlineMs }, signal) => {
      const request: ExchangeRequest = {
        method: "POST",
        path: `${basePath}/response`,
        headers: [
          ...headers,
          [HEADER.contentType, "application/json"],
          [HEADER.shardToken, utf8AsHeaderValue(token)],
        ],
        body,
      };
      const limits = { deadlineMs, bodyBytesMax: () => RESPONSE_ANSWER_BYTES_MAX };
      const answer = collectAnswer(runtime, pool, request, limits, signal);
      return dump === undefined ? answer : dump.exchange("service", request, answer);
    },
    close: async () => {
      await Promise.all([pollConnection.destroy(), pool.destroy()]);
    },
  };
}

function pollBodyBytesMax(status: number): number {
  return status === 200 ? POLL_BODY_BYTES_MAX : CORRECTION_BODY_BYTES_MAX;
}
