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
