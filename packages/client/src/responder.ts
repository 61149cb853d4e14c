// Posts what a command's target said back to the service, until the service has it or the command's time is over.
//
// Spec: T18 (nothing after the deadline), T19, R20 (the command's own token), R21.
// I1  Posts of one command never overlap: each starts when the one before has ended. I2  A final goes out at most 3 times,
//     the same bytes each time. I3  After a failed notification no other of that command is sent; the final still is.
// I4  Nothing an answer says changes polling (R21).

import { encodeTunnelFailure, FINAL_ATTEMPTS_MAX, retryAfterMsOf } from "@moor/protocol";
import { sleep, type Logger, type Runtime } from "@moor/runtime";
import type { ControlPlane } from "./control-plane.ts";
import type { CollectedAnswer } from "./http/collect-answer.ts";
import { encodeResponseBody, type ResponseContent } from "./response-body.ts";

/** A command as its responses need it. */
export interface ResponseContext {
  readonly requestId: string;
  readonly channel: string;
  readonly token: string;
  /** Id of the caller's message as JSON text; `null` where it has none. */
  readonly rawId: string;
  /** Fires when the command's time is over or the agent stops. */
  readonly signal: AbortSignal;
}

/** What came of a final: `gone` if the service does not want it any more. */
export type FinalOutcome = "accepted" | "gone" | "refused" | "given-up" | "expired";

/** A response without the command's own fields. */
export type ResponsePart = Omit<ResponseContent, "requestId" | "channel">;

/** Longest time one attempt takes, milliseconds: 16 MiB pass a line of 5 Mbit/s within it. */
const ATTEMPT_MS = 30_000;
const RETRY_DELAY_MS = 200;
const RETRIED: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** The responses of one command. */
export class Responder {
  readonly #controlPlane: ControlPlane;
  readonly #runtime: Runtime;
  readonly #logger: Logger;
  readonly #context: ResponseContext;
  /** `gone`: the service has forgotten the command, so that neither notification nor final is wanted. */
  #notifications: "open" | "skipped" | "gone" = "open";

  constructor(controlPlane: ControlPlane, runtime: Runtime, logger: Logger, context: ResponseContext) {
    this.#controlPlane = controlPlane;
    this.#runtime = runtime;
    this.#logger = logger;
    this.#context = context;
  }

  /** Posts a notification; call it again only when it has settled. Never rejects. */
  async notify(part: ResponsePart): Promise<void> {
    if (this.#notifications !== "open") return;
    const body = this.#encode(part);
    for (let attempt = 1; attempt <= FINAL_ATTEMPTS_MAX; attempt += 1) {
      if (this.#context.signal.aborted) return;
      const answer = await this.#post(body);
      if (isAccepted(answer)) return;
      if (answer.kind === "answer" && answer.status === 404) {
        this.#notifications = "gone";
        return;
      }
      if (!mayRepeatNotification(answer) || attempt === FINAL_ATTEMPTS_MAX) break;
      await this.#pause(attempt, answer);
    }
    this.#notifications = "skipped";
    this.#logger.warn("notification-failed", { requestId: this.#context.requestId });
  }

  /** Posts the final and ends the command. Never rejects. */
  async finish(part: ResponsePart): Promise<FinalOutcome> {
    if (this.#notifications === "gone") return "gone";
    const outcome = await this.#postFinal(this.#encode(part), true);
    if (outcome === "refused" || outcome === "given-up") {
      this.#logger.warn("response-failed", { requestId: this.#context.requestId, outcome });
    }
    return outcome;
  }

  async #postFinal(body: Uint8Array, mayShrink: boolean): Promise<FinalOutcome> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#context.signal.aborted) return "expired";
      const answer = await this.#post(body);
      if (isAccepted(answer)) return "accepted";
      if (answer.kind === "answer" && answer.status === 404) return "gone";
      if (answer.kind === "answer" && answer.status === 413 && mayShrink) {
        // The caller would wait for its deadline otherwise; said once, in a body that fits.
        return this.#postFinal(this.#encode(this.#tooLarge()), false);
      }
      if (this.#context.signal.aborted) return "expired";
      if (!mayRepeatFinal(answer)) return "refused";
      if (attempt >= FINAL_ATTEMPTS_MAX) return "given-up";
      await this.#pause(attempt, answer);
    }
  }

  #tooLarge(): ResponsePart {
    const failure = {
      version: 1,
      source: "protocol",
      transport_error_kind: "too_large",
      upstream_response_received: true,
    } as const;
    const json = Buffer.from(encodeTunnelFailure(this.#context.rawId, 502, failure));
    return { type: "jsonrpc_response", code: 502, json };
  }

  #encode(part: ResponsePart): Uint8Array {
    const { requestId, channel } = this.#context;
    return encodeResponseBody({ requestId, channel, ...part });
  }

  #post(body: Uint8Array): Promise<CollectedAnswer> {
    const { token, signal } = this.#context;
    return this.#controlPlane.respond({ token, body, deadlineMs: ATTEMPT_MS }, signal);
  }

  /** Waits before attempt `attempt + 1`: 200–400 ms, then twice that, and at least what the answer asks for. */
  async #pause(attempt: number, answer: CollectedAnswer): Promise<void> {
    const ownMs = RETRY_DELAY_MS * 2 ** (attempt - 1) * (1 + this.#runtime.random());
    const askedMs =
      answer.kind === "answer" || answer.kind === "cut" ? retryAfterMsOf(answer, this.#runtime.wallMs()) : 0;
    await sleep(this.#runtime, Math.max(ownMs, askedMs ?? 0), this.#context.signal);
  }
}

function isAccepted(answer: CollectedAnswer): boolean {
  return answer.kind === "answer" && answer.status === 200;
}

function mayRepeatFinal(answer: CollectedAnswer): boolean {
  if (answer.kind === "answer") return RETRIED.has(answer.status);
  return answer.kind === "fault" || answer.kind === "cut";
}

/** A notification has no id that a service could tell a copy by: repeated only if it was certainly not taken. */
function mayRepeatNotification(answer: CollectedAnswer): boolean {
  if (answer.kind === "answer") return answer.status === 429;
  return answer.kind === "fault" && !answer.wasWritten;
}
