// The demo's real parts: a node, a private MCP server and an agent, each a process in a group of its own.
//
// I1  Whatever was started is taken down again, in any ending, and that nothing is left is looked up, not assumed.

import { fileURLToPath } from "node:url";
import { createTunnel, startMoorAgent, startMoorDev, type CreatedTunnel } from "@moor/testkit/moor-process";
import type { MoorDev } from "@moor/testkit/moor-process";
import { isPortTaken } from "@moor/testkit/ports";
import { listProcessGroup } from "@moor/testkit/process-group";
import { startProcess, type RunningProcess } from "@moor/testkit/processes";
import type { Narrator } from "./narrator.ts";

export interface Stage {
  readonly node: MoorDev;
  readonly tunnel: CreatedTunnel;
  /** SIGTERM to agent, server and node, in that order; resolves with what is still there, in words: [] if nothing is. */
  strike(): Promise<readonly string[]>;
}

/** Starts everything and says so. When a part does not start, those before it are stopped. */
export async function setStage(narrator: Narrator): Promise<Stage> {
  const processes: RunningProcess[] = [];
  const ports: number[] = [];
  let node: MoorDev | undefined;

  const strike = async () => {
    for (const running of processes.toReversed()) await running.stop();
    await node?.stop();
    return findLeftovers([...processes, ...(node === undefined ? [] : [node.process])], ports);
  };

  try {
    node = await startMoorDev();
    ports.push(portOf(node.endpoint), portOf(node.operatorUrl));
    narrator.say(`A Moor node serves at ${node.endpoint} (moor dev).`);

    const tunnel = await createTunnel(node, ["--name", "demo"]);
    narrator.say(`Tunnel ${tunnel.id} is there (moor tunnel create).`);

    const server = await startProcess({ args: [fileURLToPath(new URL("mcp-server.ts", import.meta.url))] });
    processes.push(server);
    const mcp = await server.stdout.waitFor(/^http:/);
    ports.push(portOf(mcp));
    narrator.say(`A private MCP server listens at ${mcp}; the node does not know that address.`);

    processes.push(await startMoorAgent({ endpoint: node.endpoint, tunnel, mcp }));
    narrator.say("An agent beside that server has dialled out to the node and waits for calls (moor agent).");
    return { node, tunnel, strike };
  } catch (error) {
    await strike();
    throw error;
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

async function findLeftovers(
  processes: readonly RunningProcess[],
  ports: readonly number[],
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { pid } of processes) {
    for (const member of await listProcessGroup(pid)) found.push(`process ${member} of group ${pid}`);
  }
  for (const port of ports) if (await isPortTaken(port)) found.push(`port ${port}`);
  return found;
}
