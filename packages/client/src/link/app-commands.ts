// The commands an app has sent over its link and waits for.
//
// Spec: L20, L31.
// I1  A command is written at most once: nothing is sent again by itself. I2  When the link ends, what was written is
//     `unknown`. I3  Every wait ends, at the latest some seconds after the command's time.

import type { AckFrame, CommandFrame, CommandId, OutcomeFrame, ResultFrame } from "@moor/protocol";
import type { Runtime, TimerHandle } from "@moor/runtime/portable";
import { RawJson } from "./raw-json.ts";
import { tellListener } from "./tell-listener.ts";

/** What came of a command on a link. `not_delivered` and `expired`: certainly not acted on. `unknown`: ask again with the
 *  same id. */
export type CommandEnding =
  | { readonly kind: "result"; readonly data: RawJson }
  | { readonly kind: "not_delivered" }
  | { readonly kind: "expired" }
  | { readonly kind: "unknown" };

/** Commands waited for at once; more are `not_delivered`. */
export const APP_COMMANDS_MAX = 1_000;
/** Time beyond its ttl that a command's ending gets, milliseconds. */
const ENDING_SLACK_MS = 10_000;

interface Waiting {
  readonly timer: TimerHandle;
  readonly end: (ending: CommandEnding) => void;
  readonly onAcked: (() => void)[];
  readonly ending: Promise<CommandEnding>;
}

/** The commands of one app. */
export class AppCommands {
  readonly #runtime: Runtime;
  readonly #send: (frame: CommandFrame) => boolean;
  readonly #waiting = new Map<CommandId, Waiting>();

  /** @param send false if the frame was not taken */
  constructor(runtime: Runtime, send: (frame: CommandFrame) => boolean) {
    this.#runtime = runtime;
    this.#send = send;
  }

  /** Writes a command and waits for its ending; one whose id is under way already is joined, not written. */
  send(frame: CommandFrame, onAcked?: () => void): Promise<CommandEnding> {
    const before = this.#waiting.get(frame.id);
    if (before !== undefined) {
      if (onAcked !== undefined) before.onAcked.push(onAcked);
      return before.ending;
    }
    const isRoom = this.#waiting.size < APP_COMMANDS_MAX;
    if (!isRoom || !this.#send(frame)) return Promise.resolve({ kind: "not_delivered" });
    const { promise: ending, resolve: end } = Promise.withResolvers<CommandEnding>();
    const timer = this.#runtime.schedule(frame.ttl_ms + ENDING_SLACK_MS, () => {
      this.#end(frame.id, { kind: "unknown" });
    });
    this.#waiting.set(frame.id, { timer, end, ending, onAcked: onAcked === undefined ? [] : [onAcked] });
    return ending;
  }

  /** Takes what the service says of a command. */
  take(frame: AckFrame | ResultFrame | OutcomeFrame): void {
    switch (frame.t) {
      case "ack":
        for (const tell of this.#waiting.get(frame.id)?.onAcked ?? []) tellListener(tell);
        return;
      case "result":
        return this.#end(frame.id, { kind: "result", data: new RawJson(frame.data) });
      case "outcome":
        return this.#end(frame.id, { kind: frame.outcome });
    }
  }

  /** The link is no more. */
  lose(): void {
    for (const id of this.#waiting.keys()) this.#end(id, { kind: "unknown" });
  }

  #end(id: CommandId, ending: CommandEnding): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    this.#runtime.cancel(waiting.timer);
    waiting.end(ending);
  }
}
