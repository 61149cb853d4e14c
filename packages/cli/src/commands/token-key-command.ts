// `moor token-key add|promote|retire|list`: rotation of the keys that seal polling tokens, in two phases.
//
// Spec: R23.   I1  A key's bytes are shown nowhere.

import type { Command } from "commander";
import { RefusedError } from "../exit-code.ts";
import { FleetClient, type TokenKeyJson } from "../fleet-client.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { tokenKeyIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printTable } from "../output.ts";

interface TokenKeyOptions extends OperatorOptions {
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const ROTATION =
  "\nA rotation: add a key, wait until every live node has it, promote it, and retire the old one.\n" +
  "Each step goes on while agents poll; no call fails of it.\n";

/** Adds `token-key` and its verbs to the program. */
export function registerTokenKeyCommand(program: Command): void {
  const tokenKey = program.command("token-key").description("rotate the keys that seal polling tokens");
  registerAdd(tokenKey);
  registerPromote(tokenKey);
  registerRetire(tokenKey);
  registerList(tokenKey);
}

function registerAdd(tokenKey: Command): void {
  const add = tokenKey
    .command("add")
    .description("add a key that every node accepts and none seals with yet")
    .option("--reason <text>", "why, for the audit")
    .option("--json", "print one JSON object");
  addOperatorOptions(add)
    .addHelpText("after", `${ROTATION}\nExample:\n  moor token-key add`)
    .action(async (options: TokenKeyOptions) => {
      const key = await new FleetClient(findOperator(options)).addTokenKey(options.reason);
      if (options.json === true) return printJson(tokenKeyAnswer(key));
      printAnswer(`added ${key.id}: accepted, not used yet`);
      printMessage(`Next: moor token-key promote ${key.id}. To undo: moor token-key retire ${key.id}`);
    });
}

function registerPromote(tokenKey: Command): void {
  const promote = tokenKey
    .command("promote")
    .description("seal new tokens with an accepted key; refused while a live node does not have it")
    .argument("<id>", "token key, as `moor token-key list` shows it", tokenKeyIdOption("ID"))
    .option("--reason <text>", "why, for the audit")
    .option("--json", "print one JSON object");
  addOperatorOptions(promote)
    .addHelpText("after", `${ROTATION}\nExample:\n  moor token-key promote tk_01234567`)
    .action(async (id: string, options: TokenKeyOptions) => {
      const client = new FleetClient(findOperator(options));
      const before = await client.listTokenKeys();
      const key = await client.promoteTokenKey(id, options.reason);
      if (options.json === true) return printJson(tokenKeyAnswer(key));
      printAnswer(`promoted ${id}: new tokens are sealed with it`);
      const old = before.items.find((item) => item.state === "sealing" && item.id !== id)?.id;
      if (old === undefined) return;
      printMessage(`Next: moor token-key retire ${old}. To undo: moor token-key promote ${old}`);
    });
}

function registerRetire(tokenKey: Command): void {
  const retire = tokenKey
    .command("retire")
    .description("forget a key, for good; what it sealed is placed anew first, where it is")
    .argument("<id>", "token key, as `moor token-key list` shows it", tokenKeyIdOption("ID"))
    .option("--reason <text>", "why, for the audit")
    .option("--dry-run", "only say what would be placed anew")
    .option("--json", "print one JSON object");
  addOperatorOptions(retire)
    .addHelpText("after", `${ROTATION}\nExample:\n  moor token-key retire tk_01234567 --dry-run`)
    .action(async (id: string, options: TokenKeyOptions) => {
      const client = new FleetClient(findOperator(options));
      const isDryRun = options.dryRun === true;
      const { items } = await client.listTokenKeys();
      const key = items.find((item) => item.id === id);
      if (key === undefined) throw new RefusedError("token_key_not_found", `there is no token key ${id}`);
      const { placements } = key;
      if (!isDryRun) await client.retireTokenKey(id, options.reason);
      if (options.json === true) return printJson({ id, retired: !isDryRun, placements, dryRun: isDryRun });
      const [retired, placed] = isDryRun ? ["would retire", "place"] : ["retired", "placed"];
      printAnswer(`${retired} ${id} and ${placed} ${placements} tenants anew`);
      printMessage(
        isDryRun ? "Nothing was changed." : "This cannot be undone; `moor token-key add` makes a new one.",
      );
    });
}

function registerList(tokenKey: Command): void {
  const list = tokenKey
    .command("list")
    .description("list token keys, never their bytes")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(list)
    .addHelpText("after", "\nExample:\n  moor token-key list")
    .action(async (options: TokenKeyOptions) => {
      const { items, next } = await new FleetClient(findOperator(options)).listTokenKeys();
      if (options.json === true) return printJson({ items: items.map(tokenKeyAnswer), next });
      const rows = items.map((key) => [
        key.id,
        key.state,
        key.state_since,
        key.created_at,
        key.created_by,
        String(key.placements),
      ]);
      printTable(["id", "state", "since", "created", "by", "placements"], rows);
    });
}

function tokenKeyAnswer(key: TokenKeyJson): Record<string, unknown> {
  const { id, state, placements, created_at, state_since, created_by } = key;
  return { id, state, createdAt: created_at, stateSince: state_since, createdBy: created_by, placements };
}
