export { settle, VirtualRuntime } from "./virtual-runtime.ts";
export { verifies, type SpecId } from "./verifies.ts";
export { until, WAIT_MS_DEFAULT, within } from "./within.ts";
export { createTempDir, type TempDir } from "./temp-dir.ts";
export { claimPort, isPortTaken } from "./ports.ts";
export { holdSocket, type HeldSocket } from "./held-socket.ts";
export { startDialling, type DialCounts, type Dialling } from "./dial-load.ts";
export type { LineLog, LineMatch } from "./line-log.ts";
export { expectGroupEmpty, listProcessGroup, signalGroup } from "./process-group.ts";
export { startProcess, type ProcessEnd, type ProcessOptions, type RunningProcess } from "./processes.ts";
export {
  createTunnel,
  MOOR_BIN,
  runMoor,
  startMoor,
  startMoorAgent,
  startMoorDev,
  type CreatedTunnel,
  type MoorAgentOptions,
  type MoorDev,
  type MoorDevOptions,
  type MoorRun,
} from "./moor-process.ts";
export { startTcpBalancer, type TcpBalancer } from "./tcp-balancer.ts";
export { startTcpProxy, type TcpProxy, type WireState } from "./tcp-proxy.ts";
export { startPostgres, type PostgresServer } from "./postgres.ts";
export { postgresMissing } from "./postgres-binaries.ts";
export { startHttpHost, type HttpHost } from "./http-host.ts";
export {
  startLedgerServer,
  type LedgerAnswer,
  type LedgerEntry,
  type LedgerServer,
} from "./ledger-server.ts";
export {
  encodeAnswer,
  idleService,
  startScriptedService,
  type ScriptedAnswer,
  type ScriptedHandler,
  type ScriptedRequest,
  type ScriptedService,
} from "./scripted-service.ts";
export { startCluster, type Cluster, type ClusterOptions } from "./cluster.ts";
export type { ClusterNodeSpec } from "./cluster-config.ts";
export type { ClusterNode, NodeEvent } from "./cluster-node.ts";
export { startFleet, type Fleet, type FleetOptions, type FleetRun, type FleetTunnel } from "./fleet.ts";
export { AGENT_MIXES, type AgentMix } from "./fleet-agents.ts";
export { encodeCall, readAnswer, type CallEnding, type CallForm, type CallRecord } from "./fleet-call.ts";
export { moveRound, type MovesMade } from "./fleet-moves.ts";
export { startPlainAgent, type PlainAgent, type PlainAgentOptions } from "./fleet-plain-agent.ts";
export { faultsOf, judgeFleet, NO_FAULTS, type FleetVerdict } from "./fleet-verdict.ts";
export { errorOf, openOperator, OperatorClient, type OperatorReply } from "./operator-client.ts";
export { Inbox } from "./inbox.ts";
export { FakeLink, type ClientClose, type ClientFrame, type HelloOkWords } from "./fake-link.ts";
export {
  makeServiceKey,
  startFakeLinkService,
  type FakeDial,
  type FakeLinkService,
  type FakeLinkServiceOptions,
  type FakeRequest,
  type FakeServiceKey,
  type FakeTlsHello,
} from "./fake-link-service.ts";
export {
  boxKeyOf,
  dialPlainApp,
  dialPlainBox,
  lookupLoopback,
  rawPublicKeyOf,
  type PlainDialEnding,
  type PlainFrame,
  type PlainLink,
} from "./link-plain.ts";
export { makeLinkCertificates, type CertificateKind, type LinkCertificates } from "./link-certificates.ts";
export { createMemoryCommandLog, type MemoryCommandLog } from "./memory-command-log.ts";
