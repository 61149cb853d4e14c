// The header lines every control-plane request carries, encoded once for the agent's life.
//
// Spec: R1, R10, T16.
// I1  Exactly one capabilities line on every request (R1). I2  No configured header can replace or add an X-Tunnel-*
//     line: parseAgentOptions has refused those, and ours are written here alone.

import {
  CAPABILITY_WRONG_CLUSTER,
  encodeCapabilities,
  encodeServerInfo,
  HEADER,
  WIRE_PROTOCOL_VERSION,
  type InstanceId,
} from "@moor/protocol";
import { randomHex, type Runtime } from "@moor/runtime";
import type { AgentSettings } from "./agent-options.ts";
import { AGENT_NAME, AGENT_VERSION } from "./agent-version.ts";
import type { HeaderLine } from "./http/header-lines.ts";

/** A fresh instance id: 32 lower-case hex characters naming this process. Spec T8, T16. */
export function createInstanceId(runtime: Runtime): InstanceId {
  return randomHex(runtime, 16) as InstanceId;
}

/** The lines of T16 and the configured extra ones, the bearer key included. Never log them. */
export function controlHeaders(settings: AgentSettings, instanceId: InstanceId): readonly HeaderLine[] {
  const ours: HeaderLine[] = [
    [HEADER.authorization, `Bearer ${settings.key.reveal()}`],
    [HEADER.accept, "application/json"],
    [HEADER.userAgent, `${AGENT_NAME}/${AGENT_VERSION}`],
    [HEADER.clientName, AGENT_NAME],
    [HEADER.clientVersion, AGENT_VERSION],
    [HEADER.instanceId, instanceId],
    [HEADER.wireVersion, WIRE_PROTOCOL_VERSION],
    [HEADER.capabilities, encodeCapabilities([CAPABILITY_WRONG_CLUSTER])],
    [
      HEADER.serverInfo,
      encodeServerInfo(
        settings.channels.map(({ name }) => ({ name, stateless: false, procAffinity: false })),
      ),
    ],
  ];
  const taken = new Set(ours.map(([name]) => name.toLowerCase()));
  return [...ours, ...settings.extraHeaders.filter(([name]) => !taken.has(name.toLowerCase()))];
}
