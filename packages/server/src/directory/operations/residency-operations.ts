// The corrections switch, the default shard and the ring of token keys, as the directory offers them.
//
// Spec: R23, R25, L22.

import { randomHex } from "@moor/runtime";
import { ProtocolError } from "@moor/protocol";
import type { Directory, TokenKeyRecord } from "../directory.ts";
import { textAt } from "../columns.ts";
import { assertOrder } from "../order-input.ts";
import { tokenKeyFromRow } from "../rows.ts";
import { query, READ } from "../statements.ts";
import type { DirectoryParts } from "./directory-parts.ts";

type ResidencyOperations = Pick<
  Directory,
  | "setCorrections"
  | "setDefaultShard"
  | "addTokenKey"
  | "promoteTokenKey"
  | "retireTokenKey"
  | "listTokenKeys"
>;

/** Operations on the residency. */
export function residencyOperations(parts: DirectoryParts): ResidencyOperations {
  const list = async () => (await parts.store.read(query(READ.tokenKeys, []))).map(tokenKeyFromRow);
  const find = async (id: string): Promise<TokenKeyRecord> => {
    const found = (await list()).find((key) => key.id === id);
    if (found === undefined) throw new ProtocolError("token_key_not_found");
    return found;
  };
  return {
    async setCorrections(isOn, order) {
      assertOrder(order);
      await parts.change({ kind: "set-corrections", isOn, actor: order.actor });
    },
    async setDefaultShard(shard, order) {
      assertOrder(order);
      await parts.change({ kind: "set-default-shard", shard });
    },
    async addTokenKey(order) {
      assertOrder(order);
      const id = `tk_${randomHex(parts.runtime, 8)}`;
      const secret = parts.runtime.randomBytes(32);
      const sealedSecret = parts.vault.seal(parts.replica.residency(), id, secret);
      await parts.change({ kind: "add-token-key", id, sealedSecret, actor: order.actor });
      return find(id);
    },
    async promoteTokenKey(id, order) {
      assertOrder(order);
      await parts.change({ kind: "promote-token-key", id, self: parts.self?.id ?? "" });
      return find(id);
    },
    async retireTokenKey(id, order) {
      assertOrder(order);
      let after = "";
      for (;;) {
        const last = (await parts.change({ kind: "retire-token-key", id, after })).at(-1);
        if (last === undefined) return;
        after = textAt(last, "tenant");
      }
    },
    listTokenKeys: list,
  };
}
