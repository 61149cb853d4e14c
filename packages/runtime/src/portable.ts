// What of this package runs anywhere, browsers included: no import of Node, no logger.
// I1  Everything `@moor/client/app` needs of this package comes from here; a bundle of it holds nothing else.

export { ConfigError, errorCodeOf, invariant } from "./config-error.ts";
export { sleep, type Runtime, type TimerHandle } from "./runtime.ts";
export { Secret } from "./secret.ts";
export { createWebRuntime } from "./web-runtime.ts";
