// When to dial one other node: at once when it becomes known, then with growing waits for as long as there is no link.
//
// Spec: docs/protocol/peer-link.md, "Dialling".
// I1  At most one attempt at a time, and none while a link is up.
// I2  An outage is one warning per cause, however long it lasts.

import type { Logger, Runtime, TimerHandle } from "@moor/runtime";
import { REDIAL_FORGET_MS, REDIAL_MS_MAX, REDIAL_MS_MIN } from "./transport-limits.ts";
import type { Dial, PeerTransport, Wire } from "./wire.ts";

export interface PeerDiallerOptions {
  readonly nodeId: string;
  readonly transport: PeerTransport;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** A connection is open; what becomes of it is told by `failed` or `linkUp`. */
  readonly opened: (wire: Wire) => void;
}

/** Why an attempt came to nothing: how its connection ended, or why there was none. */
export interface DialEnding {
  readonly by: "self" | "peer" | "network";
  /** A fixed word or an error code. */
  readonly reason: string;
  readonly cause?: string | undefined;
}

type State =
  | { readonly kind: "resting" }
  | { readonly kind: "waiting"; readonly timer: TimerHandle }
  | { readonly kind: "dialling"; readonly dial: Dial };

/** The dialling of one node. */
export class PeerDialler {
  readonly #options: PeerDiallerOptions;
  #url: string;
  #state: State = { kind: "resting" };
  #failures = 0;
  #upAtMs: number | undefined;
  /** Causes that were warned about since the last link: their number is that of error codes. */
  readonly #said = new Set<string>();

  constructor(url: string, options: PeerDiallerOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** There is no connection and should be one. */
  start(): void {
    if (this.#state.kind !== "resting") return;
    if (this.#failures === 0 && this.#upAtMs === undefined) this.#dial();
    else this.#wait();
  }

  /** The node is to be found elsewhere. */
  setUrl(url: string): void {
    if (url === this.#url) return;
    this.#url = url;
    this.#failures = 0;
    if (this.#state.kind === "resting") return;
    this.rest();
    this.#dial();
  }

  /** Stops trying, until `start`. */
  rest(): void {
    if (this.#state.kind === "waiting") this.#options.runtime.cancel(this.#state.timer);
    if (this.#state.kind === "dialling") this.#state.dial.cancel();
    this.#state = { kind: "resting" };
  }

  /** A link is up, whoever dialled it. */
  linkUp(): void {
    this.rest();
    this.#upAtMs = this.#options.runtime.monotonicMs();
    this.#said.clear();
  }

  /** The link that was up is not any more. */
  linkDown(): void {
    const livedMs = this.#options.runtime.monotonicMs() - (this.#upAtMs ?? 0);
    if (livedMs >= REDIAL_FORGET_MS) this.#failures = 0;
  }

  /** An attempt came to nothing. */
  failed({ by, reason, cause }: DialEnding): void {
    this.#failures += 1;
    const { logger, nodeId } = this.#options;
    const what = `${by} ${reason} ${cause ?? ""}`;
    const fields = { peer: nodeId, url: this.#url, by, reason, cause };
    if (this.#said.has(what)) return logger.debug("peer-unreachable", fields);
    this.#said.add(what);
    logger.warn("peer-unreachable", fields);
  }

  #dial(): void {
    const { transport, opened } = this.#options;
    const dial = transport.dial(
      this.#url,
      (wire) => {
        this.#state = { kind: "resting" };
        opened(wire);
      },
      (reason) => {
        this.#state = { kind: "resting" };
        this.failed({ by: "network", reason });
        this.#wait();
      },
    );
    this.#state = { kind: "dialling", dial };
  }

  #wait(): void {
    const { runtime } = this.#options;
    const longestMs = Math.min(REDIAL_MS_MAX, REDIAL_MS_MIN * 2 ** Math.min(this.#failures, 16));
    const delayMs = longestMs * (0.5 + runtime.random() / 2);
    this.#state = { kind: "waiting", timer: runtime.schedule(delayMs, () => this.#dial()) };
  }
}
