export { sleep, type Runtime, type TimerHandle } from "./runtime.ts";
export { createNodeRuntime } from "./node-runtime.ts";
export { randomHex } from "./random-hex.ts";
export { Secret } from "./secret.ts";
export {
  createLogger,
  createSilentLogger,
  LOG_LEVELS,
  type Logger,
  type LogField,
  type LogFields,
  type LoggerOptions,
  type LogLevel,
} from "./logger.ts";
export { ConfigError, errorCodeOf, invariant } from "./config-error.ts";
