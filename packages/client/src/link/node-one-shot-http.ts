// One-shots in Node, over undici's dispatcher: `fetch` would repeat a 421 by itself.
//
// Spec: L9, L19.
// I1  A connection serves one request: what was kept open may be dead, and a request on a dead one is of unknown end.
// I2  Certificates are always verified against the host of the URL.

import { LINK_FRAME_BYTES_MAX } from "@moor/protocol";
import type { Runtime } from "@moor/runtime";
import { Agent, type Dispatcher } from "undici";
import { AGENT_VERSION } from "../agent-version.ts";
import { collectAnswer, type CollectedAnswer } from "../http/collect-answer.ts";
import type { ExchangeRequest } from "../http/exchange.ts";
import type { FaultCategory } from "../http/fault-category.ts";
import { lookupLoopbackFirst } from "./loopback-lookup.ts";
import type { OneShotAnswer, OneShotHttp, OneShotRequest } from "./one-shot-http.ts";
import { troubleOfCategory } from "./socket-fault.ts";
import { ADDRESS_WAIT_MS, type NodeDialOptions } from "./ws-dialler.ts";

/** One-shots on real sockets. */
export function createNodeOneShotHttp(runtime: Runtime, { ca, lookup }: NodeDialOptions = {}): OneShotHttp {
  const agent = new Agent({
    allowH2: false,
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      lookup: lookup ?? lookupLoopbackFirst,
      autoSelectFamilyAttemptTimeout: ADDRESS_WAIT_MS,
      rejectUnauthorized: true,
      ...(ca !== undefined && { ca }),
    },
  });
  return {
    request: async (request, signal) => {
      const limits = { deadlineMs: request.deadlineMs, bodyBytesMax: () => LINK_FRAME_BYTES_MAX };
      const dispatcher = toOrigin(agent, request.url.origin);
      return answerOf(await collectAnswer(runtime, dispatcher, exchangeOf(request), limits, signal));
    },
    close: () => agent.destroy(),
  };
}

/** A dispatcher for one origin, as an exchange takes it. */
function toOrigin(agent: Agent, origin: string): Dispatcher {
  return { dispatch: (options, handler) => agent.dispatch({ ...options, origin }, handler) } as Dispatcher;
}

function exchangeOf({ url, method, headers, body }: OneShotRequest): ExchangeRequest {
  const own = [["User-Agent", `moor-link/${AGENT_VERSION}`]] as const;
  return {
    method,
    path: url.path,
    headers: [...own, ...headers],
    ...(body !== undefined && { body: Buffer.from(body) }),
  };
}

function answerOf(collected: CollectedAnswer): OneShotAnswer {
  switch (collected.kind) {
    case "answer": {
      const { status, headerLines, body, isComplete } = collected;
      if (!isComplete) return fault("protocol", true);
      return { kind: "answer", status, headers: headerLines, body: Buffer.from(body).toString("utf8") };
    }
    case "cut":
      return fault(collected.category, true);
    case "fault":
      return fault(collected.category, collected.wasWritten);
    case "cancelled":
      return fault("other", true);
  }
}

function fault(category: FaultCategory, wasWritten: boolean): OneShotAnswer {
  return { kind: "fault", trouble: troubleOfCategory(category), wasWritten };
}
