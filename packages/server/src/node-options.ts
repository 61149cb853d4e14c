// What a node is started with: who it is, where it listens, whom it is told about by.
//
// Spec: T1. Design: "Shape". Built by `moor dev` (dev-node.ts) and from a configuration file (config/).
// I1  Secrets are values here (`Secret`, bytes), never texts that print.

import type { BaseHost } from "@moor/protocol";
import type { Logger, Runtime, Secret } from "@moor/runtime";
import type { NodeRole, ShardId } from "./directory/records.ts";

/** `replica`: the entry knows every placement. `bootstrap`: it goes by token, else by rendezvous. Spec R24. */
export const ENTRY_MODES = ["replica", "bootstrap"] as const;
export type EntryMode = (typeof ENTRY_MODES)[number];

/** A shard this node runs. */
export interface NodeShard {
  readonly id: ShardId;
  /** Host name of the shard for the link plane, one label below the base host. Spec L4. */
  readonly publicHost: string;
}

/** Who a node is. */
export interface NodeIdentity {
  /** Stable over restarts and unique in the residency: `^[a-z0-9][a-z0-9-]{0,62}$`. */
  readonly id: string;
  readonly roles: readonly NodeRole[];
  /** Up to SHARDS_PER_NODE_MAX; empty exactly when `roles` lacks `shard`. */
  readonly shards: readonly NodeShard[];
  readonly entryMode: EntryMode;
}

/** Where placements, tunnels and keys are durable: in the data directory, or in PostgreSQL. */
export type DirectoryOption =
  | { readonly kind: "sqlite" }
  /** `url` holds the password. */
  | { readonly kind: "postgres"; readonly url: Secret }
  /** None: a bootstrap entry asks its peers. */
  | { readonly kind: "none" };

/** Certificate and private key of a listener, PEM files; read anew when they change. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** The listener that other nodes dial. */
export interface InternalOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** What other nodes dial, `tcp://host:port`. Default: the bound address. */
  readonly url?: string;
  /** Mutual TLS; needed off loopback. */
  readonly tls?: TlsFiles & { readonly caFile: string };
  /** Nodes that the directory does not tell of: bootstrap entries, and, for those, the nodes to ask. */
  readonly peers?: readonly { readonly id: string; readonly internalUrl: string }[];
}

export interface NodeOptions {
  readonly node: NodeIdentity;
  /** Version of the program, up to 64 characters, as `moor nodes` shows it. Default empty. */
  readonly version?: string;
  /** Host that clients of the link plane are configured with; shards' own hosts are labels of it. Spec L4. */
  readonly baseHost: BaseHost;
  /** Name of the residency, `^[a-z0-9-]{1,32}$`. Default: what the directory has, `global` for a new one. */
  readonly residency?: string;
  readonly directory: DirectoryOption;
  /**
   * 32 bytes that encrypt token keys in the directory: the same at every node of a residency. Default: minted in the
   * data directory, which is enough for one node.
   */
  readonly nodeSecret?: Uint8Array;
  /** What a new directory is told about corrections. Default off. Spec R25. */
  readonly isCorrectionsOnAtFirst?: boolean;
  /** Address of the public listener. Default `127.0.0.1`. */
  readonly host: string;
  /** Port of the public listener; 0 = any free one. */
  readonly port: number;
  /**
   * Take the data directory over from the process that holds it: serve its port at once, tell it to leave, wait up to
   * `waitMs`. Needs `isPortShared` in both. Default: a directory in use ends the start.
   */
  readonly takeOver?: { readonly waitMs: number };
  /** Another process of this user that says so too may listen at the same public port. Default false. */
  readonly isPortShared?: boolean;
  /** Number of an inherited socket that serves as the public listener, instead of host and port. */
  readonly publicFd?: number;
  /** TLS on the public listener. Default: plain HTTP. */
  readonly publicTls?: TlsFiles;
  /** Address of the operator listener. Default `127.0.0.1`. */
  readonly operatorHost: string;
  /** Port of the operator listener; 0 = any free one. */
  readonly operatorPort: number;
  /** Peer listener. Absent: this node has no peers. */
  readonly internal?: InternalOptions;
  /** Folder of the directory's files, made with mode 0700 if absent. */
  readonly dataDir: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Origin that callers use, e.g. `https://moor.example`, where it is not the listener's own. */
  readonly publicUrl?: string;
  /**
   * Addresses and networks (`10.0.0.0/8`) of proxies whose X-Forwarded-For tells the client's address. Default none.
   * Spec L25.
   */
  readonly trustedProxies?: readonly string[];
  /** Between two pings of a link. Milliseconds, default 25 s, 5 s–120 s. Spec L32. */
  readonly linkPingMs?: number;
  /** Origins whose pages may call connectors. Default none. Spec T9. */
  readonly corsOrigins?: readonly string[];
  /** Serve `open` tunnels on listeners that other machines reach. Default false. Spec T10. */
  readonly isOpenAccessForced?: boolean;
  /** Settings' names, for messages about an address that cannot be had. Default: the flags of `moor dev`. */
  readonly optionNames?: { readonly publicPort: string; readonly operatorPort: string };
}

/** Most shards one node runs. Count. */
export const SHARDS_PER_NODE_MAX = 64;
