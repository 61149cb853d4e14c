// `moor home create|list|show|delete|enroll` and `moor home token …`: administration of homes through the operator API.
//
// Spec: L22, L26, L28.

import type { Command } from "commander";
import { commandName } from "../command-name.ts";
import { HomeClient, type CreatedHomeJson, type HomeDetailJson } from "../home-client.ts";
import {
  blockerLines,
  duplicateText,
  homeAnswer,
  homeDetailAnswer,
  homePairs,
  livePairs,
} from "../home-output.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { homeIdOption, integerOption, ownTunnelOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printPairs, printTable } from "../output.ts";
import { withSecretFile } from "../secret-file.ts";
import { registerHomeTokenCommand } from "./home-token-command.ts";

type Common = OperatorOptions & { readonly json?: boolean };

/** Adds `home` and its verbs to the program. */
export function registerHomeCommand(program: Command): void {
  const home = program.command("home").description("create and look after homes, their boxes and tokens");
  registerCreate(home);
  registerList(home);
  registerShow(home);
  registerDelete(home);
  registerEnroll(home);
  registerHomeTokenCommand(home);
}

interface CreateOptions extends Common {
  readonly label?: string;
  readonly tunnel?: string;
  readonly agentKeyOut?: string;
}

function registerCreate(home: Command): void {
  const create = home
    .command("create")
    .description("create a home on the default shard")
    .argument(
      "[home]",
      "its name, for good: 1 to 64 of a-z, 0-9, _ and -; without it one is made",
      homeIdOption("HOME"),
    )
    .option("--label <text>", "what people know it by")
    .option(
      "--tunnel <id>",
      "tunnel that the connector's /v1/mcp/HOME leads to; new makes one",
      ownTunnelOption("--tunnel"),
    )
    .option("--agent-key-out <file>", "with --tunnel new: write the agent key to a new file (mode 0600)")
    .option("--json", "print one JSON object");
  addOperatorOptions(create)
    .addHelpText(
      "after",
      '\nExamples:\n  moor home create anna --label "Anna\'s flat"\n' +
        "  moor home create anna --tunnel new --agent-key-out agent.key",
    )
    .action(async (id: string | undefined, options: CreateOptions) => {
      const { label, tunnel, agentKeyOut } = options;
      const fields: Record<string, string> = {};
      for (const [name, value] of Object.entries({ id, label, tunnel })) {
        if (value !== undefined) fields[name] = value;
      }
      const client = new HomeClient(findOperator(options));
      const created = await withSecretFile(
        { option: "--agent-key-out", path: tunnel === "new" ? agentKeyOut : undefined },
        () => client.createHome(fields),
        (made) => made.created_tunnel?.agent_key ?? "",
      );
      printCreated(created, options);
    });
}

function printCreated(created: CreatedHomeJson, { json, agentKeyOut }: CreateOptions): void {
  const { created_tunnel: tunnel } = created;
  if (json === true) {
    const keys = { agentKey: tunnel?.agent_key ?? null, connectorKey: tunnel?.connector_key ?? null };
    const shown =
      agentKeyOut === undefined || tunnel === null
        ? keys
        : { ...keys, agentKey: null, agentKeyFile: agentKeyOut };
    return printJson({ ...homeAnswer(created), ...(tunnel === null ? {} : shown) });
  }
  printPairs([
    ...homePairs(created),
    ...(tunnel === null
      ? []
      : ([
          ["agent key", agentKeyOut === undefined ? tunnel.agent_key : `in ${agentKeyOut}`],
          ["connector key", tunnel.connector_key ?? "none"],
        ] as [string, string][])),
  ]);
  const shownOnce = tunnel === null ? "" : "\nThe keys are not shown again.";
  printMessage(
    `${shownOnce}\nNext: ${commandName()} home enroll ${created.id} gives its box a code, ` +
      `${commandName()} home token create ${created.id} --kind app an app its token.`,
  );
}

function registerList(home: Command): void {
  const list = home
    .command("list")
    .description("list homes in the order of their names")
    .option("--limit <n>", "homes on a page; without it, all", integerOption("--limit", 1, 500))
    .option("--after <cursor>", "the next of an earlier page")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(list)
    .addHelpText("after", "\nExample:\n  moor home list --limit 50")
    .action(async (options: Common & { readonly limit?: number; readonly after?: string }) => {
      const { items, next } = await new HomeClient(findOperator(options)).listHomes(options);
      if (options.json === true) return printJson({ items: items.map(homeAnswer), next });
      const rows = items.map(({ id, label, shard, box, tunnel }) => [
        id,
        label,
        shard,
        box.enrolled ? "enrolled" : "none",
        box.shard === null ? "unknown" : box.shard ? "yes" : "no",
        tunnel ?? "none",
      ]);
      printTable(["home", "label", "shard", "box", "follows shards", "tunnel"], rows);
      if (next !== null) printMessage(`More: --after ${next}`);
    });
}

function registerShow(home: Command): void {
  const show = home
    .command("show")
    .description("show one home, how it is linked now, its apps, and who keeps it on the default shard")
    .argument("<home>", "name of the home", homeIdOption("HOME"))
    .option("--json", "print one JSON object");
  addOperatorOptions(show)
    .addHelpText("after", "\nExample:\n  moor home show anna")
    .action(async (id: string, options: Common) => {
      const found = await new HomeClient(findOperator(options)).showHome(id);
      if (options.json === true) return printJson(homeDetailAnswer(found));
      printDetail(found);
    });
}

function printDetail(home: HomeDetailJson): void {
  printPairs([...homePairs(home), ...livePairs(home.live)]);
  if (home.apps.length > 0) {
    printAnswer("");
    printTable(
      ["app", "follows shards", "last seen about"],
      home.apps.map(({ app, shard, last_seen_at: seenAt }) => [app, shard ? "yes" : "no", seenAt]),
    );
  }
  const duplicate = home.live === null ? undefined : duplicateText(home.live);
  if (duplicate !== undefined) printMessage(`\n${duplicate}`);
  if (home.move_blockers.length > 0) {
    printMessage(`\nIt may not leave the default shard because of\n${blockerLines(home.move_blockers)}`);
  }
}

function registerDelete(home: Command): void {
  const remove = home
    .command("delete")
    .description("delete a home with its tokens and its box's key, for good; its tunnel stays")
    .argument("<home>", "name of the home", homeIdOption("HOME"))
    .option("--dry-run", "only say what would go")
    .option("--json", "print one JSON object");
  addOperatorOptions(remove)
    .addHelpText("after", "\nExample:\n  moor home delete anna --dry-run")
    .action(async (id: string, options: Common & { readonly dryRun?: boolean }) => {
      const client = new HomeClient(findOperator(options));
      const isDryRun = options.dryRun === true;
      const { tunnel } = await client.showHome(id);
      const tokens = (await client.listTokens(id, {})).items.map((token) => token.id);
      if (!isDryRun) await client.deleteHome(id);
      if (options.json === true) {
        return printJson({ id, deleted: !isDryRun, dryRun: isDryRun, tokens, tunnel });
      }
      const verb = isDryRun ? "would delete" : "deleted";
      printAnswer(`${verb} home ${id} and its tokens: ${tokens.join(", ") || "none"}`);
      if (tunnel !== null) printMessage(`Its tunnel stays: ${commandName()} tunnel delete ${tunnel}`);
      printMessage(isDryRun ? "Nothing was changed. Deleting cannot be undone." : "This cannot be undone.");
    });
}

function registerEnroll(home: Command): void {
  const enroll = home
    .command("enroll")
    .description("make a code by which one box becomes the home's, within ten minutes")
    .argument("<home>", "name of the home", homeIdOption("HOME"))
    .option("--json", "print one JSON object");
  addOperatorOptions(enroll)
    .addHelpText(
      "after",
      "\nThe code works once; a box that was enrolled before is replaced when it is used, and codes made before it end.\n\n" +
        "Example:\n  moor home enroll anna",
    )
    .action(async (id: string, options: Common) => {
      const made = await new HomeClient(findOperator(options)).createEnrolment(id);
      const { home: name, code, expires_at: expiresAt } = made;
      if (options.json === true) return printJson({ home: name, code, expiresAt });
      printPairs([
        ["home", name],
        ["code", code],
        ["good until", expiresAt],
      ]);
      printMessage(
        "\nThe code is not shown again. Next, at the box:\n" +
          `  ${commandName()} box enroll --endpoint ENDPOINT --code-file - --identity box.pem --service-key service.keys`,
      );
    });
}
