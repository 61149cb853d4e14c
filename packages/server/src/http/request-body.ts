// Reads the body of a node:http request, up to a limit.

import type { IncomingMessage } from "node:http";
import type { BodyOutcome } from "./http-exchange.ts";

/**
 * The body of `request`. Never rejects.
 *
 * @param declaredBytes its Content-Length, 0 if none
 * @param bytesMax most bytes taken; one more is `too-large`, before anything is read if the length is declared
 */
export function readRequestBody(
  request: IncomingMessage,
  declaredBytes: number,
  bytesMax: number,
): Promise<BodyOutcome> {
  return new Promise((resolve) => {
    if (declaredBytes > bytesMax) return resolve({ kind: "too-large" });
    const chunks: Buffer[] = [];
    let byteCount = 0;
    const finish = (outcome: BodyOutcome) => {
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      resolve(outcome);
    };
    const onData = (chunk: Buffer) => {
      byteCount += chunk.byteLength;
      if (byteCount <= bytesMax) return void chunks.push(chunk);
      request.pause();
      finish({ kind: "too-large" });
    };
    const onEnd = () => finish({ kind: "complete", bytes: joined(chunks, byteCount) });
    const onClose = () => finish({ kind: "gone" });
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

function joined(chunks: readonly Buffer[], byteCount: number): Buffer {
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, byteCount);
}
