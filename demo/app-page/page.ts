// The app of the demo's third act, in a browser page: links to its home, sends a command every few moments, and asks
// again, by id, for what a move or a restart left unknown.
//
// I1  Nothing is sent twice by itself: an id is asked for again only when its ending was `unknown` or `not_delivered`, and the
//     box acts on an id once.

import {
  createAppLink,
  Secret,
  type AppLink,
  type ClientLinkState,
  type CommandEnding,
} from "@moor/client/app";

/** What the page is given by its own server. */
interface PageSettings {
  readonly endpoint: string;
  readonly token: string;
  readonly serviceKeys: readonly string[];
}

/** What the page tells who drives it. */
interface Tally {
  sent: number;
  answered: number;
  /** Endings that left open whether the box had acted. */
  unknown: number;
  askedAgain: number;
  hosts: string[];
}

const COMMAND_EVERY_MS = 250;
const ASK_AGAIN_MS = 500;
const TTL_MS = 5_000;
const LINES_MAX = 12;

const tally: Tally = { sent: 0, answered: 0, unknown: 0, askedAgain: 0, hosts: [] };
Object.assign(globalThis, { tally, stopSending: () => clearInterval(sending) });

const settings = (await (await fetch("./settings.json")).json()) as PageSettings;
let isOnline = false;
const link: AppLink = createAppLink(
  {
    endpoint: settings.endpoint,
    token: new Secret(settings.token),
    app: "keeper-page",
    serviceKeys: settings.serviceKeys,
  },
  {
    onState: showState,
    onPresence: ({ box }) => show("box", box),
    onEvent: ({ text }) => note(`event ${text}`),
  },
);
link.start();
const sending = setInterval(() => void sendNext(), COMMAND_EVERY_MS);

async function sendNext(): Promise<void> {
  if (!isOnline) return;
  tally.sent += 1;
  const flash = tally.sent;
  const id = `flash-${flash}`;
  let ending = await link.send({ id, ttlMs: TTL_MS, data: { flash } });
  while (ending.kind !== "result") {
    if (ending.kind === "unknown") tally.unknown += 1;
    note(`${id}: ${ending.kind}, asking again`);
    await pause(ASK_AGAIN_MS);
    tally.askedAgain += 1;
    ending = await link.send({ id, ttlMs: TTL_MS, data: { flash } });
  }
  tally.answered += 1;
  note(`${id}: ${resultText(ending)}`);
  show("tally", `${tally.sent} sent, ${tally.answered} answered, ${tally.askedAgain} asked again`);
}

function resultText(ending: CommandEnding): string {
  return ending.kind === "result" ? ending.data.text : ending.kind;
}

function showState(state: ClientLinkState): void {
  isOnline = state.kind === "online";
  if (state.kind === "online") tally.hosts.push(state.host);
  const why = "why" in state ? ` (${state.why})` : "";
  show("link", `${state.kind}${"host" in state ? ` ${state.host}` : ""}${why}`);
}

function show(id: string, text: string): void {
  const element = document.getElementById(id);
  if (element !== null) element.textContent = text;
}

function note(text: string): void {
  const log = document.getElementById("log");
  const line = document.createElement("li");
  line.textContent = text;
  log?.prepend(line);
  if (log !== null && log.childElementCount > LINES_MAX) log.lastElementChild?.remove();
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
