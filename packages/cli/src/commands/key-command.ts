// `moor key create|list|revoke`: administration of keys through the operator API.
//
// Spec: T2.

import { type Command, Option } from "commander";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { OperatorClient, type CreatedKeyJson, type KeyJson } from "../operator-client.ts";
import { integerOption, keyIdOption, tunnelIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printPairs, printTable } from "../output.ts";
import { withSecretFile } from "../secret-file.ts";

type Common = OperatorOptions & { readonly json?: boolean };

/** Adds `key` and its verbs to the program. */
export function registerKeyCommand(program: Command): void {
  const key = program.command("key").description("create and revoke keys of tunnels");
  registerCreate(key);
  registerList(key);
  registerRevoke(key);
}

interface CreateOptions extends Common {
  readonly tunnel: string;
  readonly kind: string;
  readonly label?: string;
  readonly out?: string;
}

function registerCreate(key: Command): void {
  const create = key
    .command("create")
    .description("create one more key for a tunnel; the others keep working")
    .requiredOption("--tunnel <id>", "tunnel the key opens", tunnelIdOption("--tunnel"))
    .addOption(
      new Option("--kind <kind>", "agent: polls and answers; connector: calls")
        .choices(["agent", "connector"])
        .makeOptionMandatory(),
    )
    .option("--label <text>", "what people know it by")
    .option("--out <file>", "write the key to a new file (mode 0600) instead of printing it")
    .option("--json", "print one JSON object");
  addOperatorOptions(create)
    .addHelpText(
      "after",
      "\nThe key is shown once and never again.\n\nExample:\n" +
        "  moor key create --tunnel tunnel_0123456789abcdef0123456789abcdef --kind agent --out agent.key",
    )
    .action(async (options: CreateOptions) => {
      printCreated(await createKey(new OperatorClient(findOperator(options)), options), options);
    });
}

async function createKey(client: OperatorClient, options: CreateOptions): Promise<CreatedKeyJson> {
  const { tunnel, kind, label, out } = options;
  return withSecretFile(
    { option: "--out", path: out },
    () => client.createKey({ tunnel, kind, ...(label === undefined ? {} : { label }) }),
    (created) => created.key,
  );
}

function printCreated(created: CreatedKeyJson, options: CreateOptions): void {
  const { out } = options;
  if (options.json === true) {
    const shown = out === undefined ? { key: created.key } : { key: null, keyFile: out };
    return printJson({ ...camelKey(created), ...shown });
  }
  printPairs([
    ["id", created.id],
    ["kind", created.kind],
    ["tunnel", created.tunnel ?? ""],
    ["key", out === undefined ? created.key : `in ${out}`],
  ]);
  printMessage("\nThe key is not shown again.");
}

function registerList(key: Command): void {
  const list = key
    .command("list")
    .description("list keys, without their text")
    .option("--tunnel <id>", "only keys of this tunnel", tunnelIdOption("--tunnel"))
    .option("--limit <n>", "keys on a page; without it, all", integerOption("--limit", 1, 500))
    .option("--after <cursor>", "the next of an earlier page")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(list)
    .addHelpText("after", "\nExample:\n  moor key list --tunnel tunnel_0123456789abcdef0123456789abcdef")
    .action(
      async (
        options: Common & { readonly tunnel?: string; readonly limit?: number; readonly after?: string },
      ) => {
        const { items, next } = await new OperatorClient(findOperator(options)).listKeys(options);
        if (options.json === true) return printJson({ items: items.map(camelKey), next });
        const rows = items.map((item) => [
          item.id,
          item.kind,
          item.tunnel ?? item.home ?? "",
          `${item.prefix}…`,
          item.label,
          item.revoked ? "revoked" : "valid",
        ]);
        printTable(["id", "kind", "tenant", "begins", "label", "state"], rows);
        if (next !== null) printMessage(`More: --after ${next}`);
      },
    );
}

function registerRevoke(key: Command): void {
  const revoke = key
    .command("revoke")
    .description("revoke a key, for good; polls that wait with it end")
    .argument("<key-id>", "id of the key, as `moor key list` shows it", keyIdOption("KEY_ID"))
    .option("--dry-run", "only say what would go")
    .option("--json", "print one JSON object");
  addOperatorOptions(revoke)
    .addHelpText("after", "\nExample:\n  moor key revoke key_0123456789abcdef01234567 --dry-run")
    .action(async (id: string, options: Common & { readonly dryRun?: boolean }) => {
      const client = new OperatorClient(findOperator(options));
      const isDryRun = options.dryRun === true;
      const found = isDryRun ? await client.showKey(id) : await client.revokeKey(id);
      if (options.json === true) return printJson({ ...camelKey(found), dryRun: isDryRun });
      printAnswer(
        `${isDryRun ? "would revoke" : "revoked"} ${id} (${found.kind} key of ${found.tunnel ?? found.home ?? ""})`,
      );
      printMessage(
        isDryRun
          ? "Nothing was changed. Revoking cannot be undone; a new key can be created."
          : "This cannot be undone; `moor key create` makes a new one.",
      );
    });
}

function camelKey(key: KeyJson): Record<string, unknown> {
  return {
    id: key.id,
    kind: key.kind,
    tunnel: key.tunnel,
    ...(key.home === undefined ? {} : { home: key.home }),
    label: key.label,
    prefix: key.prefix,
    createdAt: key.created_at,
    revoked: key.revoked,
  };
}
