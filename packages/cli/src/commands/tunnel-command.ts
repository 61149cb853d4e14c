// `moor tunnel create|list|show|update|delete`: administration of tunnels through the operator API.
//
// Spec: T1, T7, T10.

import { type Command, Option } from "commander";
import { ConfigError } from "@moor/runtime";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { OperatorClient } from "../operator-client.ts";
import { durationOption, integerOption, tunnelIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printTable } from "../output.ts";
import { printCreatedTunnel, printTunnel, tunnelAnswer } from "../tunnel-output.ts";
import { withSecretFile } from "../secret-file.ts";

interface TunnelFields {
  readonly name?: string;
  readonly description?: string;
  readonly access?: string;
  readonly deadline?: string;
}

type Common = OperatorOptions & { readonly json?: boolean };

/** Adds `tunnel` and its verbs to the program. */
export function registerTunnelCommand(program: Command): void {
  const tunnel = program.command("tunnel").description("create and look after tunnels");
  registerCreate(tunnel);
  registerList(tunnel);
  registerShow(tunnel);
  registerUpdate(tunnel);
  registerDelete(tunnel);
}

function registerCreate(tunnel: Command): void {
  const create = addFieldOptions(tunnel.command("create").description("create a tunnel and its first keys"))
    .option("--agent-key-out <file>", "write the agent key to a new file (mode 0600) instead of printing it")
    .option("--json", "print one JSON object");
  addOperatorOptions(create)
    .addHelpText(
      "after",
      "\nThe keys are shown once and never again.\n\nExamples:\n  moor tunnel create --name notes\n" +
        "  moor tunnel create --access passthrough --deadline 2m --json\n  moor tunnel create --agent-key-out agent.key",
    )
    .action(async (options: Common & TunnelFields & { readonly agentKeyOut?: string }) => {
      const client = new OperatorClient(findOperator(options));
      const created = await withSecretFile(
        { option: "--agent-key-out", path: options.agentKeyOut },
        () => client.createTunnel(fieldsOf(options)),
        (made) => made.agent_key,
      );
      printCreatedTunnel(created, options.json === true, options.agentKeyOut);
    });
}

function registerList(tunnel: Command): void {
  const list = tunnel
    .command("list")
    .description("list tunnels in the order of their ids")
    .option("--limit <n>", "tunnels on a page; without it, all", integerOption("--limit", 1, 500))
    .option("--after <cursor>", "the next of an earlier page")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(list)
    .addHelpText("after", "\nExamples:\n  moor tunnel list\n  moor tunnel list --limit 50 --json")
    .action(async (options: Common & { readonly limit?: number; readonly after?: string }) => {
      const client = new OperatorClient(findOperator(options));
      const { items, next } = await client.listTunnels(options);
      if (options.json === true) return printJson({ items: items.map(tunnelAnswer), next });
      const rows = items.map((item) => [
        item.id,
        item.name,
        item.access,
        item.deadline,
        item.seen ? "yes" : "no",
      ]);
      printTable(["id", "name", "access", "deadline", "seen"], rows);
      if (next !== null) printMessage(`More: --after ${next}`);
    });
}

function registerShow(tunnel: Command): void {
  const show = tunnel
    .command("show")
    .description("show one tunnel")
    .argument("<id>", "tunnel id", tunnelIdOption("ID"))
    .option("--json", "print one JSON object");
  addOperatorOptions(show)
    .addHelpText("after", "\nExample:\n  moor tunnel show tunnel_0123456789abcdef0123456789abcdef")
    .action(async (id: string, options: Common) => {
      printTunnel(await new OperatorClient(findOperator(options)).showTunnel(id), options.json === true);
    });
}

function registerUpdate(tunnel: Command): void {
  const update = addFieldOptions(
    tunnel
      .command("update")
      .description("change the given fields of a tunnel; they apply to calls that come after")
      .argument("<id>", "tunnel id", tunnelIdOption("ID")),
  ).option("--json", "print one JSON object");
  addOperatorOptions(update)
    .addHelpText(
      "after",
      "\nExample:\n  moor tunnel update tunnel_0123456789abcdef0123456789abcdef --deadline 5m",
    )
    .action(async (id: string, options: Common & TunnelFields) => {
      const fields = fieldsOf(options);
      if (Object.keys(fields).length === 0) {
        throw new ConfigError(
          "moor tunnel update",
          "no field",
          "--name, --description, --access or --deadline",
        );
      }
      printTunnel(
        await new OperatorClient(findOperator(options)).updateTunnel(id, fields),
        options.json === true,
      );
    });
}

function registerDelete(tunnel: Command): void {
  const remove = tunnel
    .command("delete")
    .description("delete a tunnel and its keys, for good")
    .argument("<id>", "tunnel id", tunnelIdOption("ID"))
    .option("--dry-run", "only say what would go")
    .option("--json", "print one JSON object");
  addOperatorOptions(remove)
    .addHelpText(
      "after",
      "\nExample:\n  moor tunnel delete tunnel_0123456789abcdef0123456789abcdef --dry-run",
    )
    .action(async (id: string, options: Common & { readonly dryRun?: boolean }) => {
      const client = new OperatorClient(findOperator(options));
      const isDryRun = options.dryRun === true;
      const doomed = await client.showTunnel(id);
      const keys = await client.listKeys({ tunnel: id });
      if (!isDryRun) await client.deleteTunnel(id);
      const keyIds = keys.items.map((key) => key.id);
      if (options.json === true) return printJson({ id, deleted: !isDryRun, dryRun: isDryRun, keys: keyIds });
      const verb = isDryRun ? "would delete" : "deleted";
      printAnswer(`${verb} ${id} (${doomed.name}) and its keys: ${keyIds.join(", ") || "none"}`);
      printMessage(isDryRun ? "Nothing was changed. Deleting cannot be undone." : "This cannot be undone.");
    });
}

function addFieldOptions(command: Command): Command {
  return command
    .option("--name <text>", "what people call it")
    .option("--description <text>", "what it is for")
    .addOption(
      new Option(
        "--access <mode>",
        "who may call: bearers of a connector key, whoever the MCP server lets in, or anyone",
      ).choices(["key", "passthrough", "open"]),
    )
    .option(
      "--deadline <duration>",
      "longest time of a call, 1s to 15m (new tunnels: 55s)",
      durationOption("--deadline"),
    );
}

function fieldsOf(options: TunnelFields): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const name of ["name", "description", "access", "deadline"] as const) {
    const value = options[name];
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}
