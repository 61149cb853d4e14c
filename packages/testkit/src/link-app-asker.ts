// An app of a home by the client library, as a load asks its commands: over its link, or as one-shots.
//
// Spec: L19, L20, L31, L33. I1  It asks nothing again by itself: its user does.

import { createAppLink, type BoxPresence, type CommandEnding, type OnceEnding } from "@moor/client";
import { createNodeRuntime, Secret } from "@moor/runtime";
import type { Asker } from "./link-askers.ts";
import type { AskEnding } from "./link-command-verdict.ts";
import { within } from "./within.ts";

export interface AppAskerOptions {
  readonly endpoint: string;
  /** `<home>.moor_app_…`. */
  readonly token: string;
  /** Instance id. */
  readonly app: string;
  readonly serviceKeys: readonly string[];
  /** Default: the library's own. */
  readonly caps?: readonly string[];
  /** Default `link`. */
  readonly by?: "link" | "once";
}

export interface AppAsker extends Asker {
  /** Resolves when the link is online; at once for one-shots. */
  readonly online: Promise<void>;
  /** Whether its link is online now. */
  readonly isOnline: boolean;
  /** What it was told of its box, in order. */
  readonly presences: readonly BoxPresence[];
  stop(): Promise<void>;
}

/** Starts an app. */
export function startAppAsker(options: AppAskerOptions): AppAsker {
  const { endpoint, token, app, serviceKeys, caps, by = "link" } = options;
  const presences: BoxPresence[] = [];
  const firstOnline = Promise.withResolvers<void>();
  let isOnline = false;
  const link = createAppLink(
    { endpoint, token: new Secret(token), app, serviceKeys, ...(caps === undefined ? {} : { caps }) },
    {
      onPresence: (presence) => void presences.push(presence),
      onState: ({ kind }) => {
        isOnline = kind === "online";
        if (isOnline) firstOnline.resolve();
      },
    },
    { runtime: createNodeRuntime() },
  );
  if (by === "link") link.start();
  else firstOnline.resolve();
  return {
    home: token.split(".", 1)[0] ?? "",
    online: within(firstOnline.promise, `the app ${app} to be online`),
    get isOnline() {
      return isOnline;
    },
    presences,
    ask: async (id, ttlMs) => {
      const command = { id, ttlMs, data: { call: id } };
      return endingOf(await (by === "link" ? link.send(command) : link.once(command)));
    },
    stop: () => link.stop(),
  };
}

function endingOf(ending: CommandEnding | OnceEnding): AskEnding {
  switch (ending.kind) {
    case "result": {
      const { did = "", turn = Number.NaN } = ending.data.parse() as {
        readonly did?: string;
        readonly turn?: number;
      };
      return { kind: "result", did, turn };
    }
    case "unknown":
    case "not_delivered":
    case "expired":
      return { kind: ending.kind };
    case "refused":
    case "unreachable":
      return { kind: "broken", fault: `${ending.kind} ${ending.why}` };
  }
}
