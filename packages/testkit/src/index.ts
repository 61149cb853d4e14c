export { VirtualRuntime } from "./virtual-runtime.ts";
export { verifies, type SpecId } from "./verifies.ts";
