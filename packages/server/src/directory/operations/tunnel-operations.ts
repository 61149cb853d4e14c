// Tunnels and keys, as the directory offers them.
//
// Spec: T1, T2, T12.
// I1  Keys are minted here, returned once and stored as SHA-256 only.

import { parseTunnelId, ProtocolError, type TunnelId } from "@moor/protocol";
import { randomHex, invariant, type Runtime } from "@moor/runtime";
import type { CreatedTunnel, Directory, TunnelInput } from "../directory.ts";
import { mintKey, type KeyKind, type MintedKey } from "../keys.ts";
import type { NewKey } from "../mutations/key-mutations.ts";
import type { CreateTunnel } from "../mutations/tunnel-mutations.ts";
import { assertKeyLabel, assertTunnelInput, completeTunnelInput } from "../tunnel-input.ts";
import type { DirectoryParts } from "./directory-parts.ts";

type TunnelOperations = Pick<
  Directory,
  "createTunnel" | "updateTunnel" | "deleteTunnel" | "getTunnel" | "listTunnels" | "recordSeen"
>;
type KeyOperations = Pick<Directory, "createKey" | "revokeKey" | "listKeys">;

/** Operations on tunnels. */
export function tunnelOperations(parts: DirectoryParts): TunnelOperations {
  const { replica } = parts;
  return {
    async createTunnel(input) {
      const { mutation, created } = newTunnel(input, parts);
      await parts.change(mutation);
      return created();
    },
    async updateTunnel(id, fields) {
      assertTunnelInput(fields);
      const { name = null, description = null, access = null, deadlineMs = null } = fields;
      await parts.change({ kind: "update-tunnel", id, name, description, access, deadlineMs });
      return replica.mustHaveTunnel(id);
    },
    async deleteTunnel(id) {
      await parts.change({ kind: "delete-tunnel", id });
    },
    getTunnel: async (id) => (await parts.upToDate()).mustHaveTunnel(id),
    listTunnels: async (page) => (await parts.upToDate()).listTunnels(page),
    async recordSeen(ids) {
      const unseen = ids.filter((id) => replica.tunnel(id)?.isSeen === false);
      if (unseen.length > 0) await parts.change({ kind: "record-seen", ids: unseen });
    },
  };
}

/** Operations on keys. */
export function keyOperations(parts: DirectoryParts): KeyOperations {
  const { replica, runtime } = parts;
  return {
    async createKey({ tunnel, kind, label = "" }) {
      assertKeyLabel(label);
      const minted = mintKey(kind, runtime);
      const key = newKey(kind, minted, label, runtime);
      await parts.change({ kind: "create-key", tunnel, key });
      const record = replica.key(key.id);
      if (record === undefined) {
        throw new ProtocolError("conflict", { message: "the key was deleted meanwhile" });
      }
      return { record, key: minted.key };
    },
    async revokeKey(id) {
      await parts.change({ kind: "revoke-key", id });
      const record = replica.key(id);
      if (record === undefined) throw new ProtocolError("key_not_found");
      return record;
    },
    listKeys: async (page) => (await parts.upToDate()).listKeys(page),
  };
}

/** The mutation that makes a tunnel, and what was made once it is committed. */
export function newTunnel(
  input: TunnelInput,
  { replica, runtime }: Pick<DirectoryParts, "replica" | "runtime">,
): { readonly mutation: CreateTunnel; readonly created: () => CreatedTunnel } {
  assertTunnelInput(input);
  const id = mintTunnelId(runtime);
  const fields = completeTunnelInput(id, input);
  const agent = mintKey("agent", runtime);
  const connector = fields.access === "key" ? mintKey("connector", runtime) : null;
  const keys = [newKey("agent", agent, "", runtime)];
  if (connector !== null) keys.push(newKey("connector", connector, "", runtime));
  const keysMade = { agentKey: agent.key, connectorKey: connector?.key ?? null };
  return {
    mutation: { kind: "create-tunnel", id, ...fields, keys },
    created: () => ({ tunnel: replica.mustHaveTunnel(id), ...keysMade }),
  };
}

/** `tunnel_` and 32 hexadecimal digits. Spec T1. */
function mintTunnelId(runtime: Runtime): TunnelId {
  const id = parseTunnelId(`tunnel_${randomHex(runtime, 16)}`);
  invariant(id !== undefined, "D10 a minted tunnel id is well formed");
  return id;
}

/** A minted key as it is kept. */
export function newKey(kind: KeyKind, minted: MintedKey, label: string, runtime: Runtime): NewKey {
  return {
    id: `key_${randomHex(runtime, 12)}`,
    kind,
    hashHex: Buffer.from(minted.hash).toString("hex"),
    prefix: minted.prefix,
    label,
  };
}
