// Requests to an operator listener as a peer may write them: every Host, header and body.

import { request } from "node:http";

/** What a listener said. */
export interface OperatorReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The parsed body, or undefined when it is no JSON. */
  readonly json: Record<string, unknown> | undefined;
}

/** What to send. */
export interface OperatorAsk {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Sends the body in chunks, without Content-Length. */
  readonly isChunked?: boolean;
}

/** Sends one request to 127.0.0.1 on a connection of its own. */
export function askOperator(port: number, ask: OperatorAsk): Promise<OperatorReply> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = { ...ask.headers };
    if (ask.body !== undefined && ask.isChunked !== true) {
      headers["Content-Length"] = String(Buffer.byteLength(ask.body));
    }
    const sent = request(
      { host: "127.0.0.1", port, path: ask.path, method: ask.method ?? "GET", headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parse(text) });
        });
      },
    );
    sent.on("error", reject);
    sent.end(ask.body);
  });
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
