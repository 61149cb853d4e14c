// What a node is started with.

import type { Logger, Runtime } from "@moor/runtime";

export interface NodeOptions {
  /** Address of the public listener. Default `127.0.0.1`. */
  readonly host: string;
  /** Port of the public listener; 0 = any free one. */
  readonly port: number;
  /** Address of the operator listener. Default `127.0.0.1`. */
  readonly operatorHost: string;
  /** Port of the operator listener; 0 = any free one. */
  readonly operatorPort: number;
  /** Folder of the directory's files, made with mode 0700 if absent. */
  readonly dataDir: string;
  /** Shards of this node: 1–64. */
  readonly shardCount: number;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Origin that callers use, e.g. `https://moor.example`, where it is not the listener's own. */
  readonly publicUrl?: string;
  /** Origins whose pages may call connectors. Default none. Spec T9. */
  readonly corsOrigins?: readonly string[];
  /** Serve `open` tunnels on listeners that other machines reach. Default false. Spec T10. */
  readonly isOpenAccessForced?: boolean;
}

/** Most shards one node runs. Count. */
export const SHARDS_PER_NODE_MAX = 64;
