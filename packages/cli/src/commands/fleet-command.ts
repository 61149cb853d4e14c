// `moor shards`, `moor nodes`, `moor where`, `moor why`: what lives where, and how it came there.
//
// Design: "Moves", "Liveness".

import type { Command } from "commander";
import { FleetClient, type ShardJson } from "../fleet-client.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { tenantIdOption } from "../option-parsers.ts";
import { printJson, printMessage, printPairs, printTable } from "../output.ts";

type Common = OperatorOptions & { readonly json?: boolean };

/** Adds the four commands to the program. */
export function registerFleetCommands(program: Command): void {
  registerShards(program);
  registerNodes(program);
  registerWhere(program);
  registerWhy(program);
}

function registerShards(program: Command): void {
  const shards = program
    .command("shards")
    .description("list shards: state, node, tenants, and how old their leases are")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(shards)
    .addHelpText("after", "\nExamples:\n  moor shards\n  moor shards --json")
    .action(async (options: Common) => {
      const { items, next } = await new FleetClient(findOperator(options)).listShards();
      if (options.json === true) return printJson({ items: items.map(shardAnswer), next });
      const rows = items.map((item) => [
        item.id,
        item.default ? `${item.state}, default` : item.state,
        item.node,
        item.public_host,
        String(item.tunnels),
        String(item.homes),
        leaseText(item),
      ]);
      printTable(["shard", "state", "node", "host", "tunnels", "homes", "lease"], rows);
    });
}

/** A shard as `--json` shows it. */
function shardAnswer(shard: ShardJson): Record<string, unknown> {
  return {
    id: shard.id,
    state: shard.state,
    node: shard.node,
    publicHost: shard.public_host,
    tunnels: shard.tunnels,
    homes: shard.homes,
    leaseAgeMs: shard.lease_age_ms,
    late: shard.late,
    default: shard.default,
  };
}

function leaseText({ lease_age_ms: ageMs, late }: ShardJson): string {
  if (ageMs === null) return "unknown";
  const age = `${(ageMs / 1000).toFixed(1)} s`;
  return late ? `LATE ${age}` : age;
}

function registerNodes(program: Command): void {
  const nodes = program
    .command("nodes")
    .description("list nodes: state, roles, shards, version")
    .option("--json", 'print {"items":[…],"next":null}');
  addOperatorOptions(nodes)
    .addHelpText("after", "\nExample:\n  moor nodes")
    .action(async (options: Common) => {
      const { items, next } = await new FleetClient(findOperator(options)).listNodes();
      if (options.json === true) {
        const answers = items.map(({ internal_url: internalUrl, ...node }) => ({ ...node, internalUrl }));
        return printJson({ items: answers, next });
      }
      const rows = items.map((item) => [
        item.id,
        item.state,
        item.roles.join(","),
        item.shards.join(",") || "none",
        item.internal_url || "none",
        item.version || "unknown",
      ]);
      printTable(["node", "state", "roles", "shards", "internal URL", "version"], rows);
    });
}

function registerWhere(program: Command): void {
  const where = program
    .command("where")
    .description("say which shard and node a tunnel or home lives on")
    .argument("<tenant>", "tunnel id or name of a home", tenantIdOption("TENANT"))
    .option("--json", "print one JSON object");
  addOperatorOptions(where)
    .addHelpText("after", "\nExample:\n  moor where tunnel_0123456789abcdef0123456789abcdef")
    .action(async (tenant: string, options: Common) => {
      const found = await new FleetClient(findOperator(options)).where(tenant);
      warnOfView(found.view);
      if (options.json === true) {
        const { public_host: publicHost, ...rest } = found;
        return printJson({ ...rest, publicHost });
      }
      printPairs([
        ["tenant", found.tenant],
        ["shard", found.shard],
        ["state", found.state],
        ["node", found.node],
        ["host", found.public_host],
        ["revision", String(found.revision)],
      ]);
    });
}

function warnOfView(view: string): void {
  if (view === "behind") printMessage("The node cannot read its directory now: this is what it knew last.");
  if (view === "regressed") {
    printMessage("The directory knows less than the node has seen: see `moor directory fence --help`.");
  }
}

function registerWhy(program: Command): void {
  const why = program
    .command("why")
    .description("tell a tunnel's or home's past: its moves, and what the nodes saw of it")
    .argument("<tenant>", "tunnel id or name of a home", tenantIdOption("TENANT"))
    .option("--json", 'print {"items":[…],"unreached":[…]}');
  addOperatorOptions(why)
    .addHelpText("after", "\nExample:\n  moor why tunnel_0123456789abcdef0123456789abcdef")
    .action(async (tenant: string, options: Common) => {
      const { events, unreached } = await new FleetClient(findOperator(options)).timeline(tenant);
      if (options.json === true) return printJson({ items: events, unreached });
      printTable(
        ["at", "node", "event", "detail"],
        events.map(({ at, node, event, detail }) => [at, node, event, detail]),
      );
      if (unreached.length > 0) printMessage(`Without what these nodes saw: ${unreached.join(", ")}`);
    });
}
