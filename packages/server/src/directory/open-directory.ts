// Opens the directory a node is configured with: its own, or one that several nodes share.
//
// Spec: R22. Design: "Directory, changes, replicas".

import type { Logger, Runtime, Secret } from "@moor/runtime";
import { openPostgresDirectory } from "./postgres-directory.ts";
import type { Foundation } from "./residency.ts";
import { openSqliteDirectory, type OpenDirectory } from "./sqlite-directory.ts";

/** Where the directory is. `dir` is the node's data folder, made if missing. */
export type DirectoryLocation =
  | { readonly kind: "sqlite"; readonly dir: string }
  /** `url` as PostgreSQL's own tools take it; it holds the password. The folder keeps the replica. */
  | { readonly kind: "postgres"; readonly url: Secret; readonly dir: string };

/** What opening a directory needs. */
export interface OpenDirectoryOptions extends Foundation {
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** 32 bytes, the same at every node of a residency. Default: those of `node.secret` in the folder, minted there. */
  readonly nodeSecret?: Uint8Array | undefined;
}

/**
 * Opens a directory and this node's replica of it. With PostgreSQL a node that has a replica starts also while the
 * directory is down: health is `behind`, and changes say `directory_unavailable`.
 *
 * @throws ConfigError for a folder, schema, residency or node secret that does not fit; ProtocolError
 *   `directory_unavailable` when PostgreSQL cannot be reached and there is no replica to start from
 */
export async function openDirectory(
  location: DirectoryLocation,
  options: OpenDirectoryOptions,
): Promise<OpenDirectory> {
  const { dir } = location;
  switch (location.kind) {
    case "sqlite":
      return openSqliteDirectory({ dir, ...options });
    case "postgres":
      return openPostgresDirectory({ dir, url: location.url, ...options });
  }
}
