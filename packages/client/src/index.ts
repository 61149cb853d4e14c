export { createAgent, type Agent, type AgentPorts, type AgentStatus } from "./agent.ts";
export {
  CONCURRENCY_DEFAULT,
  parseAgentOptions,
  type AgentOptions,
  type AgentSettings,
  type ChannelOption,
} from "./agent-options.ts";
export { AGENT_NAME, AGENT_VERSION } from "./agent-version.ts";
export { createInstanceId } from "./control-headers.ts";
export {
  createControlPlane,
  type ControlPlane,
  type PollRequest,
  type ResponseRequest,
} from "./control-plane.ts";
export type { CollectedAnswer } from "./http/collect-answer.ts";
export type { FaultCategory } from "./http/fault-category.ts";
export type { HeaderLine } from "./http/header-lines.ts";
export {
  listenForHealth,
  parseHealthAddress,
  type HealthAddress,
  type HealthListener,
} from "./health-listener.ts";
export { PollClient, type PollFailure, type PollResult, type PollWish } from "./poll-client.ts";
export { createRawDump, type RawDump } from "./raw-dump.ts";
export { judgeReadiness, type Readiness, type ReadinessFacts } from "./readiness.ts";
export {
  createAppLinkOn,
  type AppCommand,
  type AppLink,
  type AppLinkListeners,
  type AppLinkOptions,
  type AppLinkPorts,
  type BoxPresence,
} from "./link/app-link.ts";
export type { CommandEnding } from "./link/app-commands.ts";
export { type BoxCommand, type CommandHandler } from "./link/box-commands.ts";
export { createBoxLink, type BoxLink, type BoxLinkOptions, type BoxLinkPorts } from "./link/box-link.ts";
export type { ClientLinkState } from "./link/client-link-state.ts";
export type { CommandLog, LoggedCommand } from "./link/command-log.ts";
export {
  openFileCommandLog,
  type CommandLogLimits,
  type CommandLogWarning,
  type FileCommandLogOptions,
} from "./link/disk/file-command-log.ts";
export { createFileRecordStore } from "./link/disk/file-record-store.ts";
export type { VerifySignature } from "./link/ed25519.ts";
export type { LinkClientWarning } from "./link/link-driver.ts";
export {
  linkUrl,
  oneShotUrl,
  parseLinkEndpoint,
  type LinkEndpoint,
  type LinkUrl,
} from "./link/link-endpoint.ts";
export type { LinkDialler, LinkSocket, SocketEnd, SocketSink } from "./link/link-socket.ts";
export { createAppLink } from "./link/node-app-link.ts";
export {
  createBoxIdentityPem,
  parseBoxIdentity,
  verifyWithNode,
  type BoxIdentity,
} from "./link/node-ed25519.ts";
export { createNodeOneShotHttp } from "./link/node-one-shot-http.ts";
export type { OneShotAnswer, OneShotHttp, OneShotRequest } from "./link/one-shot-http.ts";
export {
  lookNow,
  sendOnce,
  type NowEnding,
  type OnceEnding,
  type OnceRequest,
  type OneShotFailure,
  type OneShotPorts,
} from "./link/one-shot.ts";
export { RawJson } from "./link/raw-json.ts";
export { createMemoryRecordStore, type LinkRecordStore } from "./link/record-store.ts";
export { createUptimeWakeSource } from "./link/uptime-wake-source.ts";
export type { WakeKind, WakeSource } from "./link/wake-source.ts";
export { createWsDialler, type NodeDialOptions } from "./link/ws-dialler.ts";
