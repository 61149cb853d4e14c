// Bodies of POST …/response, put together from bytes.
//
// Spec: T6, T19 (every attempt sends the same bytes), T20.
// I1  `resp_json` is the target's message byte for byte: it is never parsed into a value and written out again.

import type { ResponseType } from "@moor/protocol";
import type { HeaderBag } from "./targets/header-policy.ts";

/** One response or notification. */
export interface ResponseContent {
  readonly requestId: string;
  /** The command's channel, echoed. */
  readonly channel: string;
  readonly type: ResponseType;
  /** HTTP status for the caller; 200 for notifications. */
  readonly code: number;
  readonly headers?: HeaderBag;
  /** The message; absent where there is none. */
  readonly json?: Uint8Array;
}

const CLOSE = Buffer.from("}");

/** The body of one response. */
export function encodeResponseBody(content: ResponseContent): Uint8Array {
  const { requestId, channel, type, code, headers = {}, json } = content;
  const fields = JSON.stringify({
    request_id: requestId,
    channel,
    resp_type: type,
    resp_code: code,
    ...(Object.keys(headers).length > 0 && { resp_headers: headers }),
  });
  if (json === undefined) return Buffer.from(fields);
  return Buffer.concat([Buffer.from(`${fields.slice(0, -1)},"resp_json":`), json, CLOSE]);
}
