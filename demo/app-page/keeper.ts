// What the app of the demo's third act does, in a page or in Node: a command every few moments, and asking again, by id,
// for what a move or a restart left open.
//
// I1  Nothing is sent twice by itself: an id is asked for again only when its ending was no result, and the box acts on
//     an id once.

import type { AppLink, AppLinkListeners, ClientLinkState } from "@moor/client/app";

/** What a keeper has counted. */
export interface KeeperTally {
  sent: number;
  answered: number;
  askedAgain: number;
  /** Hosts it was online at, in order. */
  hosts: string[];
}

/** Shows what happens. */
export interface KeeperView {
  show(what: "link" | "box" | "tally", text: string): void;
  note(text: string): void;
}

/** A keeper at work. */
export interface Keeper {
  readonly tally: KeeperTally;
  /** Sends nothing new; what was sent is still asked for. */
  stopSending(): void;
}

const COMMAND_EVERY_MS = 250;
const ASK_AGAIN_MS = 500;
const TTL_MS = 5_000;

/** Starts the link that `createLink` makes, and sends commands while it is online. */
export function startKeeper(createLink: (listeners: AppLinkListeners) => AppLink, view: KeeperView): Keeper {
  const tally: KeeperTally = { sent: 0, answered: 0, askedAgain: 0, hosts: [] };
  let isOnline = false;
  const link = createLink({
    onState: (state) => {
      isOnline = state.kind === "online";
      if (state.kind === "online") tally.hosts.push(state.host);
      view.show("link", stateText(state));
    },
    onPresence: ({ box }) => view.show("box", box),
    onEvent: ({ text }) => view.note(`event ${text}`),
  });
  link.start();
  const sending = setInterval(() => {
    if (isOnline) void sendNext(link, tally, view);
  }, COMMAND_EVERY_MS);
  return { tally, stopSending: () => clearInterval(sending) };
}

async function sendNext(link: AppLink, tally: KeeperTally, view: KeeperView): Promise<void> {
  tally.sent += 1;
  const flash = tally.sent;
  const command = { id: `flash-${flash}`, ttlMs: TTL_MS, data: { flash } };
  let ending = await link.send(command);
  while (ending.kind !== "result") {
    view.note(`${command.id}: ${ending.kind}, asking again`);
    await pause(ASK_AGAIN_MS);
    tally.askedAgain += 1;
    ending = await link.send(command);
  }
  tally.answered += 1;
  view.note(`${command.id}: ${ending.data.text}`);
  const { sent, answered, askedAgain } = tally;
  view.show("tally", `${sent} sent, ${answered} answered, asked again ${askedAgain} times`);
}

function stateText(state: ClientLinkState): string {
  const why = "why" in state ? ` (${state.why})` : "";
  return `${state.kind}${"host" in state ? ` ${state.host}` : ""}${why}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
