export { startNode, type MoorNode } from "./node.ts";
export { SHARDS_PER_NODE_MAX, type NodeOptions } from "./node-options.ts";
export { loadOperatorToken, OPERATOR_FILE, type OperatorFile } from "./operator/operator-file.ts";
export { openSqliteDirectory } from "./directory/sqlite-directory.ts";
export type {
  AccessMode,
  Directory,
  KeyRecord,
  Placement,
  Replica,
  ShardId,
  TunnelRecord,
} from "./directory/directory.ts";
export { ACCESS_MODES } from "./directory/directory.ts";
