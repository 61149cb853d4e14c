// A fleet in small: tunnels with their agents, an MCP server that keeps a ledger, and a load of callers that is judged.
//
// Spec: T4, T9, T11, R24.
// I1  A run is judged only when all of its calls have ended.

import { startCallers, type Callers, type CalledTunnel } from "./fleet-callers.ts";
import { startFleetAgents, type AgentMix, type FleetAgents } from "./fleet-agents.ts";
import { startFleetLedger, type FleetLedger, type FleetLedgerOptions } from "./fleet-ledger.ts";
import { judgeFleet, type FleetVerdict } from "./fleet-verdict.ts";

/** A tunnel with the keys of both sides. */
export interface FleetTunnel extends CalledTunnel {
  readonly agentKey: string;
}

export interface FleetOptions extends FleetLedgerOptions {
  readonly tunnels: readonly FleetTunnel[];
  /** Entries that callers use. */
  readonly endpoints: readonly string[];
  /** Entries that agents use. Default: the callers'. */
  readonly agentEndpoints?: readonly string[];
  /** Default `capable`. */
  readonly mix?: AgentMix;
}

/** How many calls a run makes. */
export interface LoadOptions {
  /** Raw calls a second over all tunnels. Default 150. */
  readonly callsPerS?: number;
  /** Official SDK clients beside them. Default 0. */
  readonly sdkClients?: number;
  /** Tunnels called. Default: all. */
  readonly tunnels?: readonly FleetTunnel[];
  /** Entries called. Default: the fleet's. */
  readonly endpoints?: readonly string[];
}

/** A load under way. */
export interface FleetRun {
  /** Calls sent so far. */
  sentCount(): number;
  /** Calls that have ended so far. */
  endedCount(): number;
  /** Sends no more calls, waits for those under way, and judges all. */
  finish(): Promise<FleetVerdict>;
}

export interface Fleet {
  readonly tunnels: readonly FleetTunnel[];
  readonly agents: FleetAgents;
  readonly ledger: FleetLedger;
  /** Starts a load; several may run at a time. */
  startRun(options?: LoadOptions): Promise<FleetRun>;
  /** Stops agents and MCP server. */
  stop(): Promise<void>;
}

/** Calls a second of a run that names no other number: what the promises are stated for. */
const CALLS_PER_S_DEFAULT = 150;

/** Starts MCP server and agents; resolves when every agent has had a successful poll. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { tunnels, endpoints, agentEndpoints = endpoints, mix = "capable" } = options;
  const ledger = await startFleetLedger(options);
  const agents = await startFleetAgents({ mix, endpoints: agentEndpoints, tunnels, mcp: ledger.url });
  let runCount = 0;
  return {
    tunnels,
    agents,
    ledger,
    startRun: async (load = {}) => {
      runCount += 1;
      const parts = await startLoads({ tunnels, endpoints, ...load }, `run${runCount}`);
      const sum = (count: (part: Callers) => number) => parts.reduce((total, part) => total + count(part), 0);
      return {
        sentCount: () => sum((part) => part.sentCount),
        endedCount: () => sum((part) => part.endedCount),
        finish: async () => {
          const records = await Promise.all(parts.map((part) => part.finish()));
          return judgeFleet(records.flat(), ledger.executions(), ledger.progressCount);
        },
      };
    },
    stop: async () => {
      await agents.stop();
      await ledger.close();
    },
  };
}

async function startLoads(
  load: LoadOptions & Required<Pick<LoadOptions, "tunnels" | "endpoints">>,
  prefix: string,
): Promise<Callers[]> {
  const { tunnels, endpoints, callsPerS = CALLS_PER_S_DEFAULT, sdkClients = 0 } = load;
  const parts: Callers[] = [];
  if (sdkClients > 0) {
    const { startSdkCallers } = await import("./fleet-sdk-callers.ts");
    parts.push(await startSdkCallers({ endpoints, tunnels, clients: sdkClients, prefix: `${prefix}-sdk` }));
  }
  if (callsPerS > 0) parts.push(startCallers({ endpoints, tunnels, callsPerS, prefix }));
  return parts;
}
