export { VirtualRuntime } from "./virtual-runtime.ts";
export { verifies, type SpecId } from "./verifies.ts";
export { until, WAIT_MS_DEFAULT, within } from "./within.ts";
export { createTempDir, type TempDir } from "./temp-dir.ts";
export { findFreePort, isPortTaken } from "./ports.ts";
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
export { startTcpProxy, type TcpProxy, type WireState } from "./tcp-proxy.ts";
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
