// The part that holds links, of a node that serves none: a bootstrap entry has no replica to verify clients with.

import type { LinkEntry } from "./link-ports.ts";
import type { EntryId } from "./peer-link.ts";

/** Holds nothing, and writes nothing. */
export function noLinks(entry: EntryId): LinkEntry {
  const ignore = () => {};
  return {
    port: {
      entry,
      deliverCommand: ({ home, linkId, id }, shard) => shard.commandSettled(home, linkId, id, "not-written"),
      linkAccepted: ignore,
      linkRefused: ignore,
      commandWritten: ignore,
      commandEnded: ignore,
      sendEvent: ignore,
      sendPresence: ignore,
      closeLink: ignore,
    },
    shardsChanged: ignore,
    placementChanged: ignore,
    homeChanged: ignore,
    keyRevoked: ignore,
  };
}
