// A fleet's agents: ours, which follow corrections, plain ones, which do not, or one of each on every tunnel.
//
// Spec: R3 (versions may share one tunnel), R24, T16.

import { createAgent, type Agent } from "@moor/client";
import { createNodeRuntime, createSilentLogger, Secret } from "@moor/runtime";
import { FLEET_TUNNEL_HEADER } from "./fleet-ledger.ts";
import { startPlainAgent, type PlainAgent } from "./fleet-plain-agent.ts";
import { within } from "./within.ts";

/** Which agents each tunnel gets. */
export const AGENT_MIXES = ["capable", "plain", "mixed"] as const;
export type AgentMix = (typeof AGENT_MIXES)[number];

export interface FleetAgentsOptions {
  readonly mix: AgentMix;
  /** Endpoints the agents are spread over; each keeps its one. */
  readonly endpoints: readonly string[];
  readonly tunnels: readonly { readonly id: string; readonly agentKey: string }[];
  readonly mcp: string;
}

export interface FleetAgents {
  readonly count: number;
  /** Polls of capable agents that ended in a valid correction, so far. */
  correctionCount(): number;
  /** Corrections that reached an agent that never declared the capability: each one breaks R4. */
  strayCorrectionCount(): number;
  /** Polls that ended in neither 200, 204 nor a correction, so far. */
  failedPollCount(): number;
  stop(): Promise<void>;
}

/** Starts the agents and waits until each has had a successful poll. */
export async function startFleetAgents(options: FleetAgentsOptions): Promise<FleetAgents> {
  const { mix, endpoints, tunnels, mcp } = options;
  const capable: CountedAgent[] = [];
  const plain: PlainAgent[] = [];
  tunnels.forEach((tunnel, at) => {
    const endpoint = endpoints[at % endpoints.length] ?? "";
    const other = endpoints[(at + 1) % endpoints.length] ?? "";
    if (mix !== "plain") capable.push(startCapableAgent(endpoint, tunnel, mcp));
    const mcpHeaders = { [FLEET_TUNNEL_HEADER]: tunnel.id };
    if (mix !== "capable") plain.push(startPlainAgent({ endpoint: other, tunnel, mcp, mcpHeaders }));
  });
  const all = [...capable, ...plain];
  await within(Promise.all(all.map(({ connected }) => connected)), `${all.length} agents to be connected`);
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  return {
    count: all.length,
    correctionCount: () => sum(capable.map((agent) => agent.correctionCount)),
    strayCorrectionCount: () => sum(plain.map((agent) => agent.correctionCount)),
    failedPollCount: () =>
      sum(capable.map((agent) => agent.failedPollCount)) +
      sum(plain.map((agent) => agent.failedPollCount - agent.correctionCount)),
    stop: async () => {
      await Promise.all(all.map((agent) => agent.stop()));
    },
  };
}

interface CountedAgent {
  readonly connected: Promise<void>;
  readonly correctionCount: number;
  readonly failedPollCount: number;
  stop(): Promise<void>;
}

const runtime = createNodeRuntime();

function startCapableAgent(
  endpoint: string,
  tunnel: { readonly id: string; readonly agentKey: string },
  mcpUrl: string,
): CountedAgent {
  const counts = { corrections: 0, failed: 0 };
  let agent: Agent | undefined;
  const connected = new Promise<void>((resolve) => {
    agent = createAgent(
      {
        endpoint,
        tunnel: tunnel.id,
        key: new Secret(tunnel.agentKey),
        channels: [{ mcpUrl }],
        mcpHeaders: [[FLEET_TUNNEL_HEADER, tunnel.id]],
        concurrency: 50,
      },
      {
        runtime,
        logger: createSilentLogger(),
        onConnected: resolve,
        onPollFailed: ({ kind }) => {
          if (kind === "correction") counts.corrections += 1;
          else counts.failed += 1;
        },
      },
    );
  });
  agent?.start();
  return {
    connected,
    get correctionCount() {
      return counts.corrections;
    },
    get failedPollCount() {
      return counts.failed;
    },
    stop: async () => agent?.stop(),
  };
}
