// `--log-http-raw-unsafe`: HTTP exchanges as text on stderr, for someone who debugs and knows that bodies are private.
//
// Spec: R8 (never a polling exchange), T25 (keys are masked even here).
// I1  Authorization, cookies and tokens are masked. I2  Whoever makes polls is never given a RawDump for them.
// I3  The body of a correction is not written, whatever request or status it came with (R8).

import { CODE_WRONG_CLUSTER, HEADER } from "@moor/protocol";
import type { CollectedAnswer } from "./http/collect-answer.ts";
import type { ExchangeRequest } from "./http/exchange.ts";
import { headerValues, type HeaderLine } from "./http/header-lines.ts";

/** Writes exchanges down. */
export interface RawDump {
  /** Writes the request now and the answer when it is there; gives the answer back. */
  exchange(
    peer: string,
    request: ExchangeRequest,
    answer: Promise<CollectedAnswer>,
  ): Promise<CollectedAnswer>;
  request(peer: string, request: ExchangeRequest): void;
  head(peer: string, status: number, headerLines: readonly HeaderLine[]): void;
  body(peer: string, bytes: Uint8Array): void;
}

const MASKED: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
  "x-tunnel-shard-token",
]);

/** A RawDump that gives each piece of text, ending in a newline, to `write`. */
export function createRawDump(write: (text: string) => void): RawDump {
  const lines = (peer: string, mark: string, text: string) =>
    write(`${text.replaceAll(/^/gm, `${peer} ${mark} `)}\n`);
  const headers = (headerLines: readonly HeaderLine[]) =>
    headerLines.map(([name, value]) => `\n${name}: ${MASKED.has(name.toLowerCase()) ? "[secret]" : value}`);
  const body = (peer: string, mark: string, bytes: Uint8Array) => {
    if (bytes.length > 0) lines(peer, mark, Buffer.from(bytes).toString("utf8"));
  };
  const dump: RawDump = {
    request: (peer, request) => {
      lines(peer, ">", [`${request.method} ${request.path}`, ...headers(request.headers)].join(""));
      if (request.body !== undefined) body(peer, ">", request.body);
    },
    head: (peer, status, headerLines) => lines(peer, "<", [`${status}`, ...headers(headerLines)].join("")),
    body: (peer, bytes) => body(peer, "<", bytes),
    exchange: async (peer, request, answer) => {
      dump.request(peer, request);
      const answered = await answer;
      if (answered.kind === "answer" || answered.kind === "cut") {
        dump.head(peer, answered.status, answered.headerLines);
      }
      if (answered.kind !== "answer") lines(peer, "<", answered.kind);
      else if (carriesCorrection(answered)) lines(peer, "<", "[correction]");
      else dump.body(peer, answered.body);
      return answered;
    },
  };
  return dump;
}

function carriesCorrection({ headerLines, body }: Extract<CollectedAnswer, { kind: "answer" }>): boolean {
  return (
    headerValues(headerLines, HEADER.shardToken).length > 0 || Buffer.from(body).includes(CODE_WRONG_CLUSTER)
  );
}
