// The app of the demo's third act in a browser page.

import { createAppLink, Secret } from "@moor/client/app";
import { startKeeper, type KeeperView } from "./keeper.ts";

/** What the page is given by its own server. */
interface PageSettings {
  readonly endpoint: string;
  readonly token: string;
  readonly serviceKeys: readonly string[];
}

const LINES_MAX = 12;

const view: KeeperView = {
  show: (id, text) => {
    const element = document.getElementById(id);
    if (element !== null) element.textContent = text;
  },
  note: (text) => {
    const log = document.getElementById("log");
    if (log === null) return;
    const line = document.createElement("li");
    line.textContent = text;
    log.prepend(line);
    if (log.childElementCount > LINES_MAX) log.lastElementChild?.remove();
  },
};

const { endpoint, token, serviceKeys } = (await (await fetch("./settings.json")).json()) as PageSettings;
const options = { endpoint, token: new Secret(token), app: "keeper", serviceKeys };
const keeper = startKeeper((listeners) => createAppLink(options, listeners), view);
// For who drives the page from outside.
Object.assign(globalThis, { keeper });
