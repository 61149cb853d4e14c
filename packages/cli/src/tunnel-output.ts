// How commands show a tunnel: pairs for people, one object for programs.

import { commandName } from "./command-name.ts";
import type { CreatedTunnelJson, TunnelJson } from "./operator-client.ts";
import { printJson, printMessage, printPairs } from "./output.ts";

/**
 * A new tunnel with its keys, and what to do next.
 *
 * @param keyFile where the agent key was written, if it was: it is then not printed
 */
export function printCreatedTunnel(
  created: CreatedTunnelJson,
  isJson: boolean,
  keyFile: string | undefined,
): void {
  if (isJson) {
    const keys = { agentKey: created.agent_key, connectorKey: created.connector_key };
    const shown = keyFile === undefined ? keys : { ...keys, agentKey: null, agentKeyFile: keyFile };
    return printJson({ ...tunnelAnswer(created), ...shown });
  }
  printPairs([
    ...pairsOf(created),
    ["agent key", keyFile === undefined ? created.agent_key : `in ${keyFile}`],
    ["connector key", created.connector_key ?? `none (access is ${created.access})`],
  ]);
  const endpoint = created.connector_url.replace(/\/v1\/mcp\/[^/]*$/, "");
  const flag = keyFile === undefined ? "" : ` --key-file ${keyFile}`;
  printMessage(
    `\nThe keys are not shown again. Next, beside the MCP server${keyFile === undefined ? ", with the agent key in $MOOR_AGENT_KEY" : ""}:\n` +
      `  ${commandName()} agent --endpoint ${endpoint} --tunnel ${created.id}${flag} --mcp http://127.0.0.1:3000/mcp`,
  );
}

/** A tunnel without keys. */
export function printTunnel(tunnel: TunnelJson, isJson: boolean): void {
  if (isJson) printJson(tunnelAnswer(tunnel));
  else printPairs(pairsOf(tunnel));
}

function pairsOf(tunnel: TunnelJson): [string, string][] {
  return [
    ["tunnel", tunnel.id],
    ["name", tunnel.name],
    ...(tunnel.description === "" ? [] : [["description", tunnel.description] as [string, string]]),
    ["access", tunnel.access],
    ["deadline", tunnel.deadline],
    ["created", tunnel.created_at],
    ["agent seen", tunnel.seen ? "yes" : "not yet"],
    ["shard", tunnel.shard],
    ["connector URL", tunnel.connector_url],
  ];
}

/** A tunnel as `--json` shows it. */
export function tunnelAnswer(tunnel: TunnelJson): Record<string, unknown> {
  return {
    id: tunnel.id,
    name: tunnel.name,
    description: tunnel.description,
    access: tunnel.access,
    deadline: tunnel.deadline,
    createdAt: tunnel.created_at,
    seen: tunnel.seen,
    shard: tunnel.shard,
    connectorUrl: tunnel.connector_url,
  };
}
