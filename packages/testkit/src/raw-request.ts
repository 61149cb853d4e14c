// Reads HTTP/1.1 requests from a socket as they are: header lines in order, none joined or trimmed beyond the wire's rules.
//
// Spec: R1, R10 (one field line, and only where it belongs).
// I1  Only what our clients send is understood: Content-Length bodies, no chunked requests.

/** One request as it arrived. */
export interface ScriptedRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Field lines in order, values as latin1 text. */
  readonly headerLines: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** Every value of one field. */
  values(name: string): string[];
}

const HEAD_END = Buffer.from("\r\n\r\n");

/** Splits the bytes of one connection into requests. */
export class RawRequestReader {
  readonly #onRequest: (request: ScriptedRequest) => void;
  #pending: Buffer = Buffer.alloc(0);

  constructor(onRequest: (request: ScriptedRequest) => void) {
    this.#onRequest = onRequest;
  }

  feed(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const headEnd = this.#pending.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const bodyStart = headEnd + HEAD_END.length;
      const head = parseHead(this.#pending.toString("latin1", 0, headEnd));
      const bodyBytes = Number(head.values("content-length")[0] ?? 0);
      if (this.#pending.length < bodyStart + bodyBytes) return;
      const body = this.#pending.subarray(bodyStart, bodyStart + bodyBytes);
      this.#pending = this.#pending.subarray(bodyStart + bodyBytes);
      this.#onRequest({ ...head, body });
    }
  }
}

function parseHead(text: string): Omit<ScriptedRequest, "body"> {
  const [requestLine = "", ...fieldLines] = text.split("\r\n");
  const [method = "", target = ""] = requestLine.split(" ");
  const [path = "", query] = target.split("?", 2);
  const headerLines = fieldLines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
  });
  return {
    method,
    path,
    query: new URLSearchParams(query),
    headerLines,
    values: (name) =>
      headerLines
        .filter(([candidate]) => candidate.toLowerCase() === name.toLowerCase())
        .map(([, value]) => value),
  };
}
