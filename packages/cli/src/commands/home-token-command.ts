// `moor home token create|list|revoke`: what apps and extensions of a home authenticate with.
//
// Spec: L7.

import { type Command, Option } from "commander";
import { HomeClient, type CreatedTokenJson } from "../home-client.ts";
import { tokenAnswer } from "../home-output.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { homeIdOption, integerOption, keyIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printPairs, printTable } from "../output.ts";
import { withSecretFile } from "../secret-file.ts";

type Common = OperatorOptions & { readonly json?: boolean };

interface CreateOptions extends Common {
  readonly kind: string;
  readonly label?: string;
  readonly out?: string;
}

/** Adds `token` and its verbs to `moor home`. */
export function registerHomeTokenCommand(home: Command): void {
  const token = home.command("token").description("create and revoke tokens of apps and extensions");
  registerCreate(token);
  registerList(token);
  registerRevoke(token);
}

function registerCreate(token: Command): void {
  const create = token
    .command("create")
    .description("create one more token of a home; the others keep working")
    .argument("<home>", "name of the home", homeIdOption("HOME"))
    .addOption(
      new Option("--kind <kind>", "app: links and commands; extension: reads the box's snapshot")
        .choices(["app", "extension"])
        .makeOptionMandatory(),
    )
    .option("--label <text>", "what people know it by")
    .option("--out <file>", "write the token to a new file (mode 0600) instead of printing it")
    .option("--json", "print one JSON object");
  addOperatorOptions(create)
    .addHelpText(
      "after",
      "\nThe token is shown once and never again.\n\nExample:\n  moor home token create anna --kind app --label phone",
    )
    .action(async (home: string, options: CreateOptions) => {
      const { kind, label, out } = options;
      const client = new HomeClient(findOperator(options));
      const created = await withSecretFile(
        { option: "--out", path: out },
        () => client.createToken(home, { kind, ...(label === undefined ? {} : { label }) }),
        (made) => made.token,
      );
      printCreated(created, options);
    });
}

function printCreated(created: CreatedTokenJson, { out, json }: CreateOptions): void {
  if (json === true) {
    const shown = out === undefined ? { token: created.token } : { token: null, tokenFile: out };
    return printJson({ ...tokenAnswer(created), ...shown });
  }
  printPairs([
    ["id", created.id],
    ["kind", created.kind],
    ["home", created.home],
    ["token", out === undefined ? created.token : `in ${out}`],
  ]);
  printMessage("\nThe token is not shown again.");
}

function registerList(token: Command): void {
  const list = token
    .command("list")
    .description("list tokens of a home, without their text")
    .argument("<home>", "name of the home", homeIdOption("HOME"))
    .option("--limit <n>", "tokens on a page; without it, all", integerOption("--limit", 1, 500))
    .option("--after <cursor>", "the next of an earlier page")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(list)
    .addHelpText("after", "\nExample:\n  moor home token list anna")
    .action(async (home: string, options: Common & { readonly limit?: number; readonly after?: string }) => {
      const { items, next } = await new HomeClient(findOperator(options)).listTokens(home, options);
      if (options.json === true) return printJson({ items: items.map(tokenAnswer), next });
      const rows = items.map(({ id, kind, prefix, label, revoked }) => [
        id,
        kind,
        `${prefix}…`,
        label,
        revoked ? "revoked" : "valid",
      ]);
      printTable(["id", "kind", "begins", "label", "state"], rows);
      if (next !== null) printMessage(`More: --after ${next}`);
    });
}

function registerRevoke(token: Command): void {
  const revoke = token
    .command("revoke")
    .description("revoke a token, for good; links made with it end")
    .argument(
      "<id>",
      "id of the token, as `moor home token list` shows it",
      keyIdOption("ID", "moor home token list"),
    )
    .option("--dry-run", "only say what would go")
    .option("--json", "print one JSON object");
  addOperatorOptions(revoke)
    .addHelpText("after", "\nExample:\n  moor home token revoke key_0123456789abcdef01234567 --dry-run")
    .action(async (id: string, options: Common & { readonly dryRun?: boolean }) => {
      const client = new HomeClient(findOperator(options));
      const isDryRun = options.dryRun === true;
      const found = isDryRun ? await client.showToken(id) : await client.revokeToken(id);
      const owner = found.home ?? found.tunnel ?? "";
      if (options.json === true) {
        return printJson({ ...tokenAnswer({ ...found, home: owner }), dryRun: isDryRun });
      }
      printAnswer(`${isDryRun ? "would revoke" : "revoked"} ${id} (${found.kind} token of ${owner})`);
      printMessage(
        isDryRun
          ? "Nothing was changed. Revoking cannot be undone; a new token can be created."
          : "This cannot be undone; `moor home token create` makes a new one.",
      );
    });
}
