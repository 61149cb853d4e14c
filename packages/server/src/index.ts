export { startNode, type MoorNode } from "./node.ts";
export {
  ENTRY_MODES,
  SHARDS_PER_NODE_MAX,
  type DirectoryOption,
  type EntryMode,
  type InternalOptions,
  type NodeIdentity,
  type NodeOptions,
  type NodeShard,
  type TlsFiles,
} from "./node-options.ts";
export { BASE_HOST_DEFAULT } from "./base-host.ts";
export { devNode } from "./dev-node.ts";
export { loadOperatorToken, OPERATOR_FILE, type OperatorFile } from "./operator/operator-file.ts";
export { openSqliteDirectory, type OpenDirectory } from "./directory/sqlite-directory.ts";
export {
  openDirectory,
  type DirectoryLocation,
  type OpenDirectoryOptions,
} from "./directory/open-directory.ts";
export { ensureNodeSecret, readNodeSecret, writeNodeSecret } from "./directory/node-secret.ts";
export type {
  AccessMode,
  Directory,
  HomeRecord,
  KeyRecord,
  Placement,
  Replica,
  ShardId,
  TunnelRecord,
} from "./directory/directory.ts";
export { ACCESS_MODES } from "./directory/directory.ts";
