// The embedded directory: SQLite in the node's data directory, read here, written on a thread of its own.
//
// Spec: T1, T2. Design: "Directory, changes, replicas".
// I1  One process per data directory (data-folder.ts).
// I2  Keys are minted here, returned once and stored as SHA-256 only.
// I3  When changes fail (disk full, read-only), they say directory_unavailable and reads go on.

import { ProtocolError, parseTunnelId, type TunnelId } from "@moor/protocol";
import type { Logger, Runtime } from "@moor/runtime";
import { openDataFolder, type DataFolder } from "./data-folder.ts";
import type {
  CreatedTunnel,
  Directory,
  KeyRecord,
  NodeRegistration,
  Page,
  PageRequest,
  Replica,
  TunnelInput,
  TunnelKeyKind,
  TunnelRecord,
} from "./directory.ts";
import { mintKey, type MintedKey } from "./keys.ts";
import type { Mutation, NewKey } from "./mutations.ts";
import { assertResidencyName, assertSameResidency, foundation, randomHex } from "./residency.ts";
import { SqliteReplica } from "./sqlite-replica.ts";
import { SqliteWriter } from "./sqlite-writer.ts";
import { assertKeyLabel, assertTunnelInput, completeTunnelInput } from "./tunnel-input.ts";

/** Largest size of the database unless asked otherwise, bytes: about ten million tunnels, far below a usual disk. */
const DATABASE_BYTES_MAX_DEFAULT = 16 * 1024 ** 3;
/** What an embedded directory needs. */
export interface SqliteDirectoryOptions {
  /** The data directory; made if missing. */
  readonly dir: string;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** Name of the residency, `^[a-z0-9-]{1,32}$`. Default: what the directory has, `global` for a new one. */
  readonly residency?: string;
  /** Largest size of the database, bytes; changes beyond it say directory_unavailable. Default 16 GiB. */
  readonly databaseBytesMax?: number;
}

/** An open embedded directory. The replica is closed with the directory. */
export interface OpenDirectory {
  readonly directory: Directory;
  readonly replica: Replica;
}

/**
 * Opens, and if need be creates and migrates, the directory in `options.dir`.
 *
 * @throws ConfigError when the folder is unusable or used by another process, the schema is newer than this program,
 *   or the directory is of another residency
 */
export async function openSqliteDirectory(options: SqliteDirectoryOptions): Promise<OpenDirectory> {
  const { dir, runtime, logger } = options;
  assertResidencyName(options.residency);
  const folder = openDataFolder(dir);
  let replica: SqliteReplica | undefined;
  const writer = new SqliteWriter({
    path: folder.databasePath,
    bytesMax: options.databaseBytesMax ?? DATABASE_BYTES_MAX_DEFAULT,
    dataDir: dir,
    runtime,
    logger,
    onCommitted: () => replica?.catchUp(),
  });
  try {
    await writer.start();
    await writer.commit(foundation(options.residency, runtime));
    replica = new SqliteReplica(folder.databasePath, logger);
    assertSameResidency(options.residency, replica.residency());
  } catch (error) {
    await writer.close(() => replica?.close());
    folder.release();
    throw error;
  }
  return { directory: new SqliteDirectory({ folder, replica, writer, runtime }), replica };
}

interface Parts {
  readonly folder: DataFolder;
  readonly replica: SqliteReplica;
  readonly writer: SqliteWriter;
  readonly runtime: Runtime;
}

class SqliteDirectory implements Directory {
  readonly #parts: Parts;
  #closing: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async createTunnel(input: TunnelInput): Promise<CreatedTunnel> {
    assertTunnelInput(input);
    const { runtime } = this.#parts;
    const id = mintTunnelId(runtime);
    const fields = completeTunnelInput(id, input);
    const agent = mintKey("agent", runtime);
    const connector = fields.access === "key" ? mintKey("connector", runtime) : null;
    const keys = [newKey("agent", agent, "", runtime)];
    if (connector !== null) keys.push(newKey("connector", connector, "", runtime));
    await this.#commit({ kind: "create-tunnel", id, ...fields, keys, wallMs: Math.trunc(runtime.wallMs()) });
    return {
      tunnel: this.#tunnel(id),
      agentKey: agent.key,
      connectorKey: connector?.key ?? null,
    };
  }

  async updateTunnel(id: TunnelId, fields: TunnelInput): Promise<TunnelRecord> {
    assertTunnelInput(fields);
    await this.#commit({
      kind: "update-tunnel",
      id,
      name: fields.name ?? null,
      description: fields.description ?? null,
      access: fields.access ?? null,
      deadlineMs: fields.deadlineMs ?? null,
    });
    return this.#tunnel(id);
  }

  async deleteTunnel(id: TunnelId): Promise<void> {
    await this.#commit({ kind: "delete-tunnel", id });
  }

  async getTunnel(id: TunnelId): Promise<TunnelRecord> {
    return this.#tunnel(id);
  }

  async listTunnels(page: PageRequest): Promise<Page<TunnelRecord>> {
    return this.#parts.replica.listTunnels(page);
  }

  async createKey(input: {
    readonly tunnel: TunnelId;
    readonly kind: TunnelKeyKind;
    readonly label?: string;
  }): ReturnType<Directory["createKey"]> {
    const { runtime, replica } = this.#parts;
    const label = input.label ?? "";
    assertKeyLabel(label);
    const minted = mintKey(input.kind, runtime);
    const key = newKey(input.kind, minted, label, runtime);
    await this.#commit({
      kind: "create-key",
      tunnel: input.tunnel,
      key,
      wallMs: Math.trunc(runtime.wallMs()),
    });
    const record = replica.key(key.id);
    if (record === undefined)
      throw new ProtocolError("conflict", { message: "the key was deleted meanwhile" });
    return { record, key: minted.key };
  }

  async revokeKey(id: string): Promise<KeyRecord> {
    await this.#commit({ kind: "revoke-key", id });
    const record = this.#parts.replica.key(id);
    if (record === undefined) throw new ProtocolError("key_not_found");
    return record;
  }

  async listKeys(page: PageRequest & { readonly tunnel?: TunnelId }): Promise<Page<KeyRecord>> {
    return this.#parts.replica.listKeys(page);
  }

  async recordSeen(ids: readonly TunnelId[]): Promise<void> {
    const unseen = ids.filter((id) => this.#parts.replica.tunnel(id)?.isSeen === false);
    if (unseen.length > 0) await this.#commit({ kind: "record-seen", ids: unseen });
  }

  async registerNode(node: NodeRegistration): Promise<void> {
    const wallMs = Math.trunc(this.#parts.runtime.wallMs());
    await this.#commit({ kind: "register-node", ...node, wallMs });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { folder, replica, writer } = this.#parts;
    await writer.close(() => replica.close());
    folder.release();
  }

  async #commit(mutation: Mutation): Promise<void> {
    const outcome = await this.#parts.writer.commit(mutation);
    if (outcome.kind === "refused") throw new ProtocolError(outcome.code, { message: outcome.message });
  }

  #tunnel(id: string): TunnelRecord {
    const tunnel = this.#parts.replica.tunnel(id);
    if (tunnel === undefined) throw new ProtocolError("tunnel_not_found");
    return tunnel;
  }
}

/** `tunnel_` and 32 hexadecimal digits. Spec T1. */
function mintTunnelId(runtime: Runtime): TunnelId {
  const id = parseTunnelId(`tunnel_${randomHex(runtime, 16)}`);
  if (id === undefined) throw new Error("a minted tunnel id is well formed");
  return id;
}

function newKey(kind: TunnelKeyKind, minted: MintedKey, label: string, runtime: Runtime): NewKey {
  return {
    id: `key_${randomHex(runtime, 12)}`,
    kind,
    hashHex: Buffer.from(minted.hash).toString("hex"),
    prefix: minted.prefix,
    label,
  };
}
