// `moor service-key list|add|retire`: the keys that sign for the service, rotated in two steps.
//
// Spec: L28, L29.   I1  Private halves are shown nowhere.

import type { Command } from "commander";
import { RefusedError } from "../exit-code.ts";
import { HomeClient, type ServiceKeyJson } from "../home-client.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { serviceKeyIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printTable } from "../output.ts";

interface ServiceKeyOptions extends OperatorOptions {
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const ROTATION =
  "\nA rotation: add a key, wait until every client that was not built with it has linked once, and retire the old one.\n";

/** Adds `service-key` and its verbs to the program. */
export function registerServiceKeyCommand(program: Command): void {
  const serviceKey = program
    .command("service-key")
    .description("show and rotate the keys by which boxes and apps know the service");
  registerList(serviceKey);
  registerAdd(serviceKey);
  registerRetire(serviceKey);
}

function registerList(serviceKey: Command): void {
  const list = serviceKey
    .command("list")
    .description("list the public keys that clients are built or configured with")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(list)
    .addHelpText("after", "\nExample:\n  moor service-key list")
    .action(async (options: ServiceKeyOptions) => {
      const { items, next } = await new HomeClient(findOperator(options)).listServiceKeys();
      if (options.json === true) return printJson({ items: items.map(serviceKeyAnswer), next });
      const rows = items.map((key) => [key.id, key.state, key.state_since, key.created_by, key.public_key]);
      printTable(["id", "state", "since", "by", "public key"], rows);
    });
}

function registerAdd(serviceKey: Command): void {
  const add = serviceKey
    .command("add")
    .description("make a key that is announced to clients as the next one and does not sign yet")
    .option("--reason <text>", "why, for the audit")
    .option("--json", "print one JSON object");
  addOperatorOptions(add)
    .addHelpText("after", `${ROTATION}\nExample:\n  moor service-key add --reason yearly`)
    .action(async (options: ServiceKeyOptions) => {
      const client = new HomeClient(findOperator(options));
      const key = await client.addServiceKey(options.reason);
      if (options.json === true) return printJson(serviceKeyAnswer(key));
      printAnswer(`added ${key.id}: ${key.state === "next" ? "announced, does not sign yet" : "signs"}`);
      printAnswer(`public key ${key.public_key}`);
      const active = (await client.listServiceKeys()).items.find(({ state }) => state === "active");
      const next = active === undefined ? "" : `Next: moor service-key retire ${active.id}. `;
      printMessage(`${next}To undo: moor service-key retire ${key.id}`);
    });
}

function registerRetire(serviceKey: Command): void {
  const retire = serviceKey
    .command("retire")
    .description("forget a key; when it is the one that signs, the next one does from now on")
    .argument("<id>", "service key, as `moor service-key list` shows it", serviceKeyIdOption("ID"))
    .option("--reason <text>", "why, for the audit")
    .option("--dry-run", "only say what would happen")
    .option("--json", "print one JSON object");
  addOperatorOptions(retire)
    .addHelpText("after", `${ROTATION}\nExample:\n  moor service-key retire 6kZ9o3v0S1aBcDeF --dry-run`)
    .action(async (id: string, options: ServiceKeyOptions) => {
      const client = new HomeClient(findOperator(options));
      const isDryRun = options.dryRun === true;
      const { items } = await client.listServiceKeys();
      const next = successorOf(id, items);
      if (!isDryRun) await client.retireServiceKey(id, options.reason);
      if (options.json === true) return printJson({ id, retired: !isDryRun, dryRun: isDryRun, signs: next });
      printAnswer(`${isDryRun ? "would retire" : "retired"} ${id}; ${next} signs`);
      printMessage(
        isDryRun
          ? "Nothing was changed. A client that knows only a retired key cannot link any more."
          : "This cannot be undone: a client that knows only this key cannot link any more.",
      );
    });
}

/** The key that signs once `id` is retired. Throws RefusedError as the service would refuse it. */
function successorOf(id: string, keys: readonly ServiceKeyJson[]): string {
  const doomed = keys.find((key) => key.id === id);
  if (doomed === undefined) throw new RefusedError("service_key_not_found", "no such service key");
  const successor = keys.find((key) => key.id !== id);
  if (successor !== undefined) return successor.id;
  throw new RefusedError("conflict", "the key signs and there is no next one: moor service-key add");
}

function serviceKeyAnswer(key: ServiceKeyJson): Record<string, unknown> {
  const { id, public_key: publicKey, state, created_at: createdAt, state_since: stateSince } = key;
  return { id, publicKey, state, createdAt, stateSince, createdBy: key.created_by };
}
