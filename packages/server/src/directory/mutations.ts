// What a change of the directory does, as a sequence of statements that any store can run.
//
// A mutation is plain data, made complete (ids, hashes, instants) by the asker, so that it can cross a thread or a
// connection. `mutationSteps` yields one Query after the other and is resumed with its rows; the store runs them in a
// transaction: synchronously in SQLite, awaiting each in PostgreSQL.
//
// Spec: T1, T2, T12.
// I1  Each mutation that changes something yields the `changes` rows for it, tombstones included.
// I2  A refused mutation's statements are undone by the store.

import type { ChangeKind } from "./directory.ts";
import { choosePlacement, revisionFloor } from "./placement-choice.ts";
import { READ, WRITE, type Query, type Row, type SqlValue } from "./statements.ts";

/** A key to be kept: never its text. */
export interface NewKey {
  readonly id: string;
  readonly kind: string;
  readonly hashHex: string;
  readonly prefix: string;
  readonly label: string;
}

/** A change asked of the directory. `wallMs` is the asker's wall clock. */
export type Mutation =
  | {
      readonly kind: "create-tunnel";
      readonly id: string;
      readonly name: string;
      readonly description: string;
      readonly access: string;
      readonly deadlineMs: number;
      readonly keys: readonly NewKey[];
      readonly wallMs: number;
    }
  | {
      readonly kind: "update-tunnel";
      readonly id: string;
      readonly name: string | null;
      readonly description: string | null;
      readonly access: string | null;
      readonly deadlineMs: number | null;
    }
  | { readonly kind: "delete-tunnel"; readonly id: string }
  | { readonly kind: "create-key"; readonly tunnel: string; readonly key: NewKey; readonly wallMs: number }
  | { readonly kind: "revoke-key"; readonly id: string }
  | { readonly kind: "record-seen"; readonly ids: readonly string[] }
  | {
      readonly kind: "register-node";
      readonly id: string;
      readonly incarnation: string;
      readonly shards: readonly { readonly id: string; readonly publicHost: string }[];
      readonly wallMs: number;
    }
  | {
      readonly kind: "found-residency";
      readonly name: string;
      readonly incarnation: string;
      readonly tokenKey: { readonly id: string; readonly secret: string };
      readonly wallMs: number;
    };

/** Why a mutation was not made: codes of the protocol's error table. */
export type RefusalCode = "tunnel_not_found" | "key_not_found" | "conflict" | "directory_unavailable";

/** What a mutation came to. */
export type MutationOutcome =
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly message: string };

/** A mutation under way: yields statements, takes their rows, ends with its outcome. */
export type MutationSteps = Generator<Query, MutationOutcome, readonly Row[]>;

const DONE: MutationOutcome = { kind: "done" };

type Of<Kind extends Mutation["kind"]> = Extract<Mutation, { kind: Kind }>;

/** One function per kind of mutation. */
const STEPS: { readonly [Kind in Mutation["kind"]]: (mutation: Of<Kind>) => MutationSteps } = {
  "create-tunnel": createTunnel,
  "update-tunnel": updateTunnel,
  "delete-tunnel": deleteTunnel,
  "create-key": createKey,
  "revoke-key": revokeKey,
  "record-seen": recordSeen,
  "register-node": registerNode,
  "found-residency": foundResidency,
};

/** The statements of a mutation. */
export function mutationSteps<Kind extends Mutation["kind"]>(mutation: Of<Kind>): MutationSteps {
  const steps: (mutation: Of<Kind>) => MutationSteps = STEPS[mutation.kind];
  return steps(mutation);
}

function* createTunnel(input: Of<"create-tunnel">): MutationSteps {
  yield query(WRITE.insertTunnel, [
    input.id,
    input.name,
    input.description,
    input.access,
    input.deadlineMs,
    input.wallMs,
  ]);
  if (!(yield* placeTenant(input.id, "created", input.wallMs))) {
    return refused("directory_unavailable", "no shard is live to place the tunnel on");
  }
  for (const key of input.keys) yield* insertKey(key, input.id, input.wallMs);
  yield change("tunnel", input.id);
  return DONE;
}

function* updateTunnel(input: Of<"update-tunnel">): MutationSteps {
  const { id, name, description, access, deadlineMs } = input;
  const updated = yield query(WRITE.updateTunnel, [id, name, description, access, deadlineMs]);
  if (updated.length === 0) return refused("tunnel_not_found", "no such tunnel");
  yield change("tunnel", id);
  return DONE;
}

function* deleteTunnel({ id }: Of<"delete-tunnel">): MutationSteps {
  const deleted = yield query(WRITE.deleteTunnel, [id]);
  if (deleted.length === 0) return refused("tunnel_not_found", "no such tunnel");
  yield query(WRITE.deletePlacement, [id]);
  const keys = yield query(WRITE.deleteTenantKeys, [id]);
  for (const key of keys) yield change("key", textOf(key, "id"));
  yield change("placement", id);
  yield change("tunnel", id);
  return DONE;
}

function* createKey(input: Of<"create-key">): MutationSteps {
  // An update that changes nothing tells whether the tunnel exists and, in PostgreSQL, holds its row until the commit.
  const tunnel = yield query(WRITE.updateTunnel, [input.tunnel, null, null, null, null]);
  if (tunnel.length === 0) return refused("tunnel_not_found", "no such tunnel");
  yield* insertKey(input.key, input.tunnel, input.wallMs);
  return DONE;
}

function* revokeKey({ id }: Of<"revoke-key">): MutationSteps {
  const revoked = yield query(WRITE.revokeKey, [id]);
  if (revoked.length > 0) {
    yield change("key", id);
    return DONE;
  }
  const known = yield query(READ.key, [id]);
  return known.length > 0 ? DONE : refused("key_not_found", "no such key");
}

function* recordSeen({ ids }: Of<"record-seen">): MutationSteps {
  for (const id of ids) {
    const seen = yield query(WRITE.markSeen, [id]);
    if (seen.length > 0) yield change("tunnel", id);
  }
  return DONE;
}

function* registerNode(node: Of<"register-node">): MutationSteps {
  yield query(WRITE.upsertNode, [node.id, node.incarnation, node.wallMs]);
  yield change("node", node.id);
  const before = yield query(WRITE.liveShardsOfNode, [node.id]);
  for (const shard of node.shards) {
    yield query(WRITE.upsertShard, [shard.id, node.id, shard.publicHost]);
    yield change("shard", shard.id);
  }
  const named = new Set(node.shards.map((shard) => shard.id));
  const dropped = before.map((row) => textOf(row, "id")).filter((id) => !named.has(id));
  for (const shard of dropped) {
    yield query(WRITE.downShard, [shard]);
    yield change("shard", shard);
  }
  for (const shard of dropped) {
    const tenants = yield query(WRITE.tenantsOfShard, [shard]);
    for (const row of tenants) yield* placeTenant(textOf(row, "tenant"), "shard-dropped", node.wallMs);
  }
  return DONE;
}

function* foundResidency(input: Of<"found-residency">): MutationSteps {
  const residency = yield query(READ.residency, []);
  if (residency.length === 0) yield query(WRITE.insertResidency, [input.name, input.incarnation]);
  const tokenKeys = yield query(WRITE.anyTokenKey, []);
  if (tokenKeys.length > 0) return DONE;
  const { id, secret } = input.tokenKey;
  yield query(WRITE.insertTokenKey, [id, secret, input.wallMs]);
  yield change("token-key", id);
  return DONE;
}

/** Places a tenant on a live shard; false when there is none. */
function* placeTenant(
  tenant: string,
  reason: string,
  wallMs: number,
): Generator<Query, boolean, readonly Row[]> {
  const live = yield query(WRITE.liveShards, []);
  const shard = choosePlacement(
    tenant,
    live.map((row) => textOf(row, "id")),
  );
  if (shard === undefined) return false;
  const sealing = yield query(WRITE.sealingTokenKey, []);
  const tokenKey = sealing[0] === undefined ? "" : textOf(sealing[0], "id");
  yield query(WRITE.placeTenant, [tenant, shard, revisionFloor(wallMs), tokenKey, reason]);
  yield change("placement", tenant);
  return true;
}

function* insertKey(key: NewKey, tenant: string, wallMs: number): Generator<Query, void, readonly Row[]> {
  yield query(WRITE.insertKey, [key.id, key.kind, tenant, key.hashHex, key.prefix, key.label, wallMs]);
  yield change("key", key.id);
}

function change(kind: ChangeKind, id: string): Query {
  return query(WRITE.insertChange, [kind, id]);
}

function query(sql: string, params: readonly SqlValue[]): Query {
  return { sql, params };
}

function refused(code: RefusalCode, message: string): MutationOutcome {
  return { kind: "refused", code, message };
}

function textOf(row: Row, column: string): string {
  return String(row[column]);
}
