// What the package offers as `@moor/server/config`: configurations without the node that runs on them.

export { writeNodeSecret } from "../directory/node-secret.ts";
export { configNodeOptions, type NodeSurroundings } from "./config-node-options.ts";
export { configJsonSchema, type NodeConfig } from "./config-schema.ts";
export { viewConfig, type ConfigView } from "./config-view.ts";
export { loadConfig, type LoadedConfig } from "./load-config.ts";
