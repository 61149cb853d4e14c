// What `moor box` and `moor app` say of their links: JSON log lines, and a sentence where someone has to act.
//
// Spec: docs/protocol/link-states.md.

import type { ClientLinkState } from "@moor/client";
import { LINK_TROUBLE } from "@moor/protocol";
import type { Logger } from "@moor/runtime";
import { printMessage } from "./output.ts";

/**
 * Hears states: one line for each that matters, and the sentence for a refusal once until it changes.
 *
 * @param authAdvice what to do where the service does not accept this client, as a sentence
 */
export function createStateReporter(logger: Logger, authAdvice: string): (state: ClientLinkState) => void {
  let said = "";
  return (state) => {
    switch (state.kind) {
      case "online":
        said = "";
        logger.info("link-online", { host: state.host, generation: state.generation });
        return;
      case "reconnecting":
      case "refused": {
        const { host, why, waitMs, clock } = state;
        logger.warn("link-down", { host, why, waitMs: Math.round(waitMs), state: state.kind, clock });
        if (state.kind === "refused" && why !== said) {
          const advice = why === "auth" ? ` ${authAdvice}` : "";
          printMessage(`${sentenceOf(state)}${advice} It is tried again.`);
        }
        said = why;
        return;
      }
      case "connecting":
        logger.debug("link-dialling", { host: state.host });
        return;
      case "idle":
      case "unlinked":
      case "stopped":
        return;
    }
  };
}

/** The table's sentence for an absence, with this machine's clock where it may be the reason. */
export function sentenceOf({ why, clock }: Extract<ClientLinkState, { readonly why: unknown }>): string {
  const { summary } = LINK_TROUBLE[why];
  return clock === undefined ? summary : `${summary} It says ${clock}.`;
}
