// The port by which one-shots are sent: one HTTP request, and its answer whole.
//
// Spec: L19 (nothing repeats or follows by itself), L33, L34.
// I1  One call is one attempt. I2  A field that occurs twice is two lines, or one line with a comma: never one value.

import type { LinkTrouble } from "@moor/protocol";
import type { LinkUrl } from "./link-endpoint.ts";

/** A request. */
export interface OneShotRequest {
  readonly url: LinkUrl;
  readonly method: "GET" | "POST";
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** JSON text. */
  readonly body?: string;
  /** Milliseconds from now to the end of the answer. */
  readonly deadlineMs: number;
}

/** What came of it. */
export type OneShotAnswer =
  | {
      readonly kind: "answer";
      readonly status: number;
      /** Names as they came; compare without case. */
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly body: string;
    }
  /** No whole answer. `wasWritten` is false only if certainly no byte of the request has left. */
  | { readonly kind: "fault"; readonly trouble: LinkTrouble; readonly wasWritten: boolean };

/** Sends one-shots. */
export interface OneShotHttp {
  /** Never rejects. */
  request(request: OneShotRequest, signal?: AbortSignal): Promise<OneShotAnswer>;
  /** Closes what is open. */
  close(): Promise<void>;
}
