// Every statement that writes, but for those about many rows (multi-row.ts).   Portable as statements.ts says.

/** Writes: what mutations are made of. */
export const WRITE = {
  numberHead: "update residency set seq = $1, last_revision = $2 where id = 1",
  trimChanges: "delete from changes where seq <= $1 and at_ms < $2",
  trimMoves: "delete from moves where revision <= $1 and at_ms < $2",

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
  insertKey: `insert into keys (id, kind, tenant, hash, prefix, label, created_at_ms, is_revoked)
    values ($1, $2, $3, $4, $5, $6, $7, 0)`,
  revokeKey: "update keys set is_revoked = 1 where id = $1 and is_revoked = 0 returning id",

  insertHome: `insert into homes (id, label, box_key, box_has_shard, box_seen_at_ms, tunnel, created_at_ms)
    values ($1, $2, null, null, null, $3, $4)`,
  home: "select id from homes where id = $1",
  homeOfTunnel: "select id from homes where tunnel = $1",
  setHomeLabel: "update homes set label = $2 where id = $1",
  setHomeTunnel: "update homes set tunnel = $2 where id = $1",
  /** A new box: what its predecessor could do says nothing of it. */
  setBoxKey: `update homes set box_key = $2, box_has_shard = null, box_seen_at_ms = null where id = $1 returning id`,
  deleteHome: "delete from homes where id = $1 returning id",
  deleteHomeApps: "delete from home_apps where home = $1 returning id",
  deleteHomeEnrolments: "delete from enrolments where home = $1",
  forgetTunnel: "update homes set tunnel = null where tunnel = $1 returning id",

  countHomeApps: "select count(*) as total from home_apps where home = $1",
  deleteOldHomeApps: "delete from home_apps where home = $1 and last_seen_ms < $2 returning id",
  /** Apps that block nothing, those seen longest ago first. */
  deleteHarmlessHomeApps: `delete from home_apps where id in (select id from home_apps where home = $1 and has_shard = 1
    order by last_seen_ms, id limit $2) returning id`,

  insertEnrolment: `insert into enrolments (id, home, secret_hash, expires_at_ms, wrong_tries)
    values ($1, $2, $3, $4, 0)`,
  enrolment: "select home, secret_hash, expires_at_ms, wrong_tries from enrolments where id = $1",
  countWrongTry: "update enrolments set wrong_tries = wrong_tries + 1 where id = $1",
  deleteEnrolment: "delete from enrolments where id = $1",
  deleteExpiredEnrolments: "delete from enrolments where expires_at_ms <= $1",

  insertServiceKey: `insert into service_keys (id, public_key, secret, state, created_at_ms, state_since_ms, created_by)
    values ($1, $2, $3, $4, $5, $5, $6)`,
  serviceKeyStates: "select id, state from service_keys",
  setServiceKeyState: "update service_keys set state = $2, state_since_ms = $3 where id = $1",
  deleteServiceKey: "delete from service_keys where id = $1",

  defaultShard: `select r.default_shard as id, s.state, s.node from residency r left join shards s on s.id = r.default_shard
    where r.id = 1`,
  setDefaultShard:
    "update residency set default_shard = $1 where id = 1 and default_shard <> $1 returning id",

  upsertNode: `insert into nodes (id, incarnation, internal_url, roles, version, state, registered_at_ms, start_revision)
    values ($1, $2, $3, $4, $5, 'live', $6, $7)
    on conflict (id) do update set incarnation = excluded.incarnation, internal_url = excluded.internal_url,
      roles = excluded.roles, version = excluded.version, state = 'live',
      registered_at_ms = excluded.registered_at_ms, start_revision = excluded.start_revision`,
  leaveNode:
    "update nodes set state = 'left' where id = $1 and incarnation = $2 and state = 'live' returning id",
  upsertShard: `insert into shards (id, node, public_host, state, lease_counter) values ($1, $2, $3, 'live', 0)
    on conflict (id) do update set node = excluded.node, public_host = excluded.public_host, state = 'live'`,
  shardsOfNode: "select id from shards where node = $1 order by id",
  downShardsOfNode: "update shards set state = 'down' where node = $1 and state <> 'down' returning id",
  /** A shard that its node does not name any more: nobody runs it. */
  dropShard: "update shards set state = 'down', node = '' where id = $1",
  tenantsOfDroppedShards: `select p.tenant from placements p join shards s on s.id = p.shard
    where s.state = 'down' and s.node = '' order by p.tenant limit $1`,
  shard: "select id, node, state from shards where id = $1",
  lease: "select node, renewed_at_ms from leases where holder = $1",
  /** A new start takes over its node's leases; the counter goes on, so that watchers see it move. */
  upsertLease: `insert into leases (holder, node, incarnation, counter, renewed_at_ms, seen_seq)
    values ($1, $2, $3, 1, $4, 0)
    on conflict (holder) do update set node = excluded.node, incarnation = excluded.incarnation,
      counter = leases.counter + 1, renewed_at_ms = excluded.renewed_at_ms, seen_seq = 0`,
  /** Leases that another start of the node holds are not renewed: the returned holders tell. */
  renewLeases: `update leases set counter = counter + 1, renewed_at_ms = $3,
    seen_seq = case when $4 > seen_seq then $4 else seen_seq end
    where node = $1 and incarnation = $2 and holder`,
  laggingNodes: `select n.id from nodes n join leases l on l.holder = 'node/' || n.id
    where n.state = 'live' and l.renewed_at_ms >= $1 and l.seen_seq < $2 and l.node <> $3 order by n.id`,

  lead: `insert into leader (id, node, incarnation, expires_at_ms) values (1, $1, $2, $3)
    on conflict (id) do update set node = excluded.node, incarnation = excluded.incarnation,
      expires_at_ms = excluded.expires_at_ms
    where (leader.node = excluded.node and leader.incarnation = excluded.incarnation) or leader.expires_at_ms <= $4
    returning node`,
  /** A node that starts or leaves leads no more: the next leader need not wait for its lease to run out. */
  endLead: "delete from leader where node = $1",
  isLeading: "select node from leader where id = 1 and node = $1 and incarnation = $2 and expires_at_ms > $3",

  insertJob: `insert into jobs (id, kind, from_shard, to_shard, rate_per_s, state, moved, total, last_tenant, actor,
      reason, created_at_ms, error, seq, is_forced, blocked, blocked_tenants)
    values ($1, 'move', $2, $3, $4, 'running', 0, $5, null, $6, $7, $8, null, $9, $10, 0, '')`,
  updateJob: `update jobs set moved = coalesce($2, moved), last_tenant = coalesce($3, last_tenant),
    state = coalesce($4, state), error = coalesce($5, error), blocked = coalesce($6, blocked),
    blocked_tenants = coalesce($7, blocked_tenants) where id = $1 and state = 'running' returning id`,
  abortJob: "update jobs set state = 'aborted', error = $2 where id = $1 and state = 'running' returning id",
  runningJobFrom: "select id from jobs where from_shard = $1 and state = 'running'",
  countTenantsOfShard: "select count(*) as total from placements where shard = $1",

  setCorrections:
    "update residency set corrections = $1, corrections_by = $2 where id = 1 and corrections <> $1 returning id",
  insertResidency: `insert into residency (id, name, incarnation, corrections, corrections_by, seq, last_revision,
      default_shard)
    values (1, $1, $2, $3, '', $4, $5, $6)`,
  setIncarnation: "update residency set incarnation = $1 where id = 1",
  anyTokenKey: "select id from token_keys limit 1",
  anyPlacement: "select tenant from placements limit 1",
  insertTokenKey: `insert into token_keys (id, secret, state, created_at_ms, state_since_ms, created_by)
    values ($1, $2, $3, $4, $4, $5)`,
  tokenKey: "select id, state, created_at_ms from token_keys where id = $1",
  setTokenKeyState: "update token_keys set state = $2, state_since_ms = $3 where id = $1",
  setTokenKeySecret: "update token_keys set secret = $2 where id = $1",
  deleteTokenKey: "delete from token_keys where id = $1",
  newestChangeOf: "select max(seq) as seq from changes where kind = $1 and id = $2",
  placementsOfTokenKey:
    "select tenant, shard, reason from placements where token_key = $1 and tenant > $2 order by tenant limit $3",
  placementsUpTo: `select tenant, shard, token_key, token_format, reason from placements
    where revision <= $1 and tenant > $2 order by tenant limit $3`,
} as const;
