// Every statement of the directory, in SQL that SQLite and PostgreSQL both take.
//
// Portable means: text, integer and null values only (truth is 0 or 1, instants are epoch milliseconds, bytes are
// hexadecimal or base64url text), `$1` parameters, `insert … on conflict … do update … returning`.

/** A value that goes into or comes out of a statement. */
export type SqlValue = string | number | null;
/** A row as a statement gives it. */
export type Row = Readonly<Record<string, unknown>>;
/** A statement with its values: `params[0]` is `$1`. */
export interface Query {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

const TUNNEL_COLUMNS =
  "t.id, t.name, t.description, t.access, t.deadline_ms, t.created_at_ms, t.is_seen, p.shard, p.revision";
const KEY_COLUMNS = "id, kind, tenant, hash, prefix, label, created_at_ms, is_revoked";

/** Reads: what a replica and the lists ask. */
export const READ = {
  tunnel: `select ${TUNNEL_COLUMNS} from tunnels t join placements p on p.tenant = t.id where t.id = $1`,
  tunnelsAfter: `select ${TUNNEL_COLUMNS} from tunnels t join placements p on p.tenant = t.id
    where t.id > $1 order by t.id limit $2`,
  key: `select ${KEY_COLUMNS} from keys where id = $1`,
  keyByHash: `select ${KEY_COLUMNS} from keys where hash = $1`,
  keysAfter: `select ${KEY_COLUMNS} from keys where id > $1 order by id limit $2`,
  tenantKeysAfter: `select ${KEY_COLUMNS} from keys where tenant = $3 and id > $1 order by id limit $2`,
  changesAfter: "select seq, kind, id from changes where seq > $1 order by seq limit $2",
  newestChange: "select coalesce(max(seq), 0) as seq from changes",
  sealingKeys:
    "select id, secret, state from token_keys order by case state when 'sealing' then 0 else 1 end, id",
  residency: "select name from residency",
} as const;

/** Writes: what mutations are made of. */
export const WRITE = {
  insertChange: "insert into changes (kind, id) values ($1, $2)",
  liveShards: "select id from shards where state = 'live' order by id",
  sealingTokenKey: "select id from token_keys where state = 'sealing'",
  insertTunnel: `insert into tunnels (id, name, description, access, deadline_ms, created_at_ms, is_seen)
    values ($1, $2, $3, $4, $5, $6, 0)`,
  updateTunnel: `update tunnels set name = coalesce($2, name), description = coalesce($3, description),
    access = coalesce($4, access), deadline_ms = coalesce($5, deadline_ms) where id = $1 returning id`,
  deleteTunnel: "delete from tunnels where id = $1 returning id",
  deletePlacement: "delete from placements where tenant = $1",
  deleteTenantKeys: "delete from keys where tenant = $1 returning id",
  markSeen: "update tunnels set is_seen = 1 where id = $1 and is_seen = 0 returning id",
  /** $3 is the wall clock in microseconds; the revision that results is max(last + 1, $3). */
  placeTenant: `insert into placements (tenant, shard, revision, token_key, token_format, reason)
    values ($1, $2, $3, $4, 1, $5)
    on conflict (tenant) do update set shard = excluded.shard, token_key = excluded.token_key,
      token_format = excluded.token_format, reason = excluded.reason,
      revision = case when placements.revision >= excluded.revision
        then placements.revision + 1 else excluded.revision end
    returning revision`,
  tenantsOfShard: "select tenant from placements where shard = $1 order by tenant",
  insertKey: `insert into keys (id, kind, tenant, hash, prefix, label, created_at_ms, is_revoked)
    values ($1, $2, $3, $4, $5, $6, $7, 0)`,
  revokeKey: "update keys set is_revoked = 1 where id = $1 and is_revoked = 0 returning id",
  upsertNode: `insert into nodes (id, incarnation, state, registered_at_ms) values ($1, $2, 'live', $3)
    on conflict (id) do update set incarnation = excluded.incarnation, state = 'live',
      registered_at_ms = excluded.registered_at_ms`,
  upsertShard: `insert into shards (id, node, public_host, state, lease_counter) values ($1, $2, $3, 'live', 0)
    on conflict (id) do update set node = excluded.node, public_host = excluded.public_host, state = 'live'`,
  liveShardsOfNode: "select id from shards where node = $1 and state = 'live' order by id",
  downShard: "update shards set state = 'down' where id = $1",
  anyTokenKey: "select id from token_keys limit 1",
  insertResidency: "insert into residency (name, incarnation, corrections) values ($1, $2, 1)",
  insertTokenKey: "insert into token_keys (id, secret, state, created_at_ms) values ($1, $2, 'sealing', $3)",
} as const;
