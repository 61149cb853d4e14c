// What the agent asks of an MCP server, whatever it speaks: Streamable HTTP now, a child's stdio by the same interface.
//
// Spec: T18 (aborted at the deadline), T20, T22, T24 (probe).
// I1  Every call ends in exactly one TargetAnswer; none rejects. I2  Messages are bytes, in and out, never re-serialised.
// I3  Aborting the signal ends the work at the target's side too, as far as its protocol allows.

import type { TunnelFailure } from "@moor/protocol";
import type { HeaderBag } from "./header-policy.ts";

/** A caller's message for the target. */
export interface TargetMessage {
  /** The message as the caller wrote it. */
  readonly bytes: Uint8Array;
  /** Headers of its command. */
  readonly headers: HeaderBag;
}

/** A request, with its id as JSON text. */
export interface TargetRequest extends TargetMessage {
  readonly rawId: string;
}

/** What a target had to say. */
export type TargetAnswer =
  /** A JSON-RPC response with the request's id, as the target wrote it. */
  | {
      readonly kind: "response";
      readonly status: number;
      readonly headers: HeaderBag;
      readonly json: Uint8Array;
    }
  /** No usable response. `status` is what the caller should see; 4xx and 5xx of the target are kept. */
  | {
      readonly kind: "failure";
      readonly status: number;
      readonly headers: HeaderBag;
      readonly failure: TunnelFailure;
    }
  /** The signal fired: nobody waits for an answer. */
  | { readonly kind: "aborted" };

/** What a target did with a message that has no response. `status` 202 stands for any success. */
export type TargetReceipt =
  | { readonly kind: "accepted"; readonly headers: HeaderBag }
  | {
      readonly kind: "failure";
      readonly status: number;
      readonly headers: HeaderBag;
      readonly failure: TunnelFailure;
    }
  | { readonly kind: "aborted" };

/** Takes a message the target sent before its response. Settles when the target may send more. */
export type OnNotification = (bytes: Uint8Array, headers: HeaderBag) => Promise<void>;

/** One MCP server. */
export interface McpTarget {
  /** Sends a request and waits for its response; messages in between go to `onNotification` in order. */
  call(request: TargetRequest, onNotification: OnNotification, signal: AbortSignal): Promise<TargetAnswer>;
  /** Sends a notification or a response of the caller's. */
  notify(message: TargetMessage, signal: AbortSignal): Promise<TargetReceipt>;
  /** Ends the MCP session that the headers name; `status` is the target's own. */
  terminate(headers: HeaderBag, signal: AbortSignal): Promise<TargetReceipt>;
  /** The target's protected-resource metadata (RFC 9728), if there is some. */
  discover(signal: AbortSignal): Promise<TargetAnswer>;
  /** Whether anything answers there. */
  probe(signal: AbortSignal): Promise<boolean>;
  /** Monotonic time at which the target last answered anything, milliseconds; undefined for never. */
  lastAnswerAtMs(): number | undefined;
  /** Ends all work and connections at once. */
  close(): Promise<void>;
}
