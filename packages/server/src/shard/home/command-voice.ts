// What the entries of those who wait for a command are told, and what is counted and logged of it.
//
// Spec: L31.

import type { HomeId } from "@moor/protocol";
import type { CommandEndingLabel } from "../../operator/metrics.ts";
import type { CommandEnding } from "../../peer/link-ports.ts";
import type { HomeContext } from "./home-context.ts";
import type { CommandWaiter, OpenCommand } from "./open-command.ts";

const LABELS: Readonly<Record<CommandEnding["kind"], CommandEndingLabel>> = {
  result: "result",
  unknown: "unknown",
  "not-delivered": "not_delivered",
  expired: "expired",
  "not-owner": "given_back",
};

export class CommandVoice {
  readonly #home: HomeId;
  readonly #context: Pick<HomeContext, "entries" | "metrics" | "logger">;

  constructor(home: HomeId, context: Pick<HomeContext, "entries" | "metrics" | "logger">) {
    this.#home = home;
    this.#context = context;
  }

  /** Everybody who waits for it: it stands in the box's socket. */
  written(open: OpenCommand): void {
    const { logger } = this.#context;
    if (logger.isDebug) logger.debug("home-command-written", { home: this.#home, command: open.id });
    for (const waiter of open.waiters.values()) this.#acked(waiter);
  }

  /** One who came later: it is written already, if it is. */
  joined(open: OpenCommand, waiter: CommandWaiter): void {
    if (open.progress.kind === "written") this.#acked(waiter);
  }

  ended({ entry, submission }: CommandWaiter, ending: CommandEnding): void {
    const { metrics, logger, entries } = this.#context;
    const { kind } = ending;
    metrics.commandsEnded.inc(LABELS[kind]);
    if (logger.isDebug) logger.debug("home-command-ended", { home: this.#home, submission, ending: kind });
    entries(entry)?.commandEnded(submission, ending);
  }

  #acked({ entry, submission }: CommandWaiter): void {
    this.#context.entries(entry)?.commandWritten(submission);
  }
}
