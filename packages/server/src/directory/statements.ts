// The directory's SQL: what a statement is, and every statement that reads. Those that write are in write-statements.ts.
//
// Everything runs unchanged on SQLite and PostgreSQL. That means: text, integer and null values only (truth is 0 or 1,
// instants are epoch milliseconds, bytes are hexadecimal or base64url text), `$1` parameters,
// `insert … on conflict … do update … returning`, and lists of values spelled out (multi-row.ts).

/** A value that goes into or comes out of a statement. */
export type SqlValue = string | number | null;
/** A row as a statement gives it. */
export type Row = Readonly<Record<string, unknown>>;
/** A statement with its values: `params[0]` is `$1`. */
export interface Query {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

const TUNNEL_COLUMNS = `t.id, t.name, t.description, t.access, t.deadline_ms, t.created_at_ms, t.is_seen, p.shard,
  p.revision, p.token_key, p.token_format`;
const TUNNELS = `select ${TUNNEL_COLUMNS} from tunnels t join placements p on p.tenant = t.id`;
const HOMES = `select h.id, h.label, h.box_key, h.box_has_shard, h.box_seen_at_ms, h.tunnel, h.created_at_ms, p.shard,
  p.revision, p.token_key, p.token_format from homes h join placements p on p.tenant = h.id`;
const KEYS = "select id, kind, tenant, hash, prefix, label, created_at_ms, is_revoked from keys";
/** Every column of the moves: read, written and copied as these. */
export const MOVE_COLUMNS = [
  "id",
  "tenant",
  "from_shard",
  "to_shard",
  "revision",
  "token_key",
  "token_format",
  "at_ms",
  "actor",
  "reason",
  "job",
] as const;
/** All moves; mutations read many of them at once. */
export const MOVES_SELECT = `select ${MOVE_COLUMNS.join(", ")} from moves`;
/** Every column of the apps seen at homes. */
export const HOME_APP_COLUMNS = ["id", "home", "app", "has_shard", "last_seen_ms"] as const;
/** Every column of the jobs. */
export const JOB_COLUMNS = [
  "id",
  "kind",
  "from_shard",
  "to_shard",
  "rate_per_s",
  "state",
  "is_forced",
  "moved",
  "blocked",
  "blocked_tenants",
  "total",
  "last_tenant",
  "actor",
  "reason",
  "created_at_ms",
  "error",
  "seq",
] as const;
const JOBS = `select ${JOB_COLUMNS.join(", ")} from jobs`;

/** Reads: what a replica, the lists and the mutations ask. */
export const READ = {
  /** The residency's one row: what every transaction starts from. */
  head: "select name, incarnation, corrections, default_shard, seq, last_revision from residency where id = 1",
  tunnel: `${TUNNELS} where t.id = $1`,
  tunnelsAfter: `${TUNNELS} where t.id > $1 order by t.id limit $2`,
  home: `${HOMES} where h.id = $1`,
  homesAfter: `${HOMES} where h.id > $1 order by h.id limit $2`,
  homeApps: "select app, has_shard, last_seen_ms from home_apps where home = $1 order by app",
  serviceKeys: `select id, public_key, secret, state, created_at_ms, state_since_ms, created_by from service_keys
    order by case state when 'active' then 0 else 1 end, id`,
  /** An enrolment that may still be redeemed: where there is none, nothing needs to be written. */
  enrolment: "select id from enrolments where id = $1",
  placement: "select shard, revision, token_key, token_format from placements where tenant = $1",
  key: `${KEYS} where id = $1`,
  keyByHash: `${KEYS} where hash = $1`,
  keysAfter: `${KEYS} where id > $1 order by id limit $2`,
  tenantKeysAfter: `${KEYS} where tenant = $3 and id > $1 order by id limit $2`,
  changesAfter: `select seq, case topic when '' then kind else topic end as kind, id, tx from changes
    where seq > $1 order by seq limit $2`,
  changeTx: "select tx from changes where seq = $1",
  sealingKeys:
    "select id, secret, state from token_keys order by case state when 'sealing' then 0 else 1 end, id",
  tokenKeys: `select k.id, k.state, k.created_at_ms, k.state_since_ms, k.created_by,
    (select count(*) from placements p where p.token_key = k.id) as placement_count
    from token_keys k order by case k.state when 'sealing' then 0 else 1 end, k.created_at_ms, k.id`,
  shards: `select s.id, s.node, s.public_host, s.state, coalesce(l.counter, 0) as lease_counter
    from shards s left join leases l on l.holder = 'shard/' || s.id order by s.id`,
  nodes: "select id, incarnation, internal_url, roles, version, state, start_revision from nodes order by id",
  tenantsOfShardAfter:
    "select tenant from placements where shard = $1 and tenant > $2 order by tenant limit $3",
  countsByShard: `select shard, count(*) as tenants,
    sum(case when substr(tenant, 1, 7) = 'tunnel_' then 1 else 0 end) as tunnels from placements group by shard`,
  move: `${MOVES_SELECT} where id = $1`,
  movesBefore: `${MOVES_SELECT} where revision < $1 order by revision desc limit $2`,
  tenantMovesBefore: `${MOVES_SELECT} where tenant = $3 and revision < $1 order by revision desc limit $2`,
  job: `${JOBS} where id = $1`,
  jobsBefore: `${JOBS} where seq < $1 order by seq desc limit $2`,
  stateJobsBefore: `${JOBS} where state = $3 and seq < $1 order by seq desc limit $2`,
} as const;

/** A statement with its values. */
export function query(sql: string, params: readonly SqlValue[]): Query {
  return { sql, params };
}
