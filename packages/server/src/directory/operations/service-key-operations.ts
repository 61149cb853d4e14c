// Service keys, as the directory offers them.
//
// Spec: L28, L29.   I1  A private half is sealed before it leaves this file.

import { ProtocolError } from "@moor/protocol";
import { isDirectoryAway, type Directory } from "../directory.ts";
import { assertOrder } from "../order-input.ts";
import { mintServiceKey } from "../service-keys.ts";
import type { DirectoryParts } from "./directory-parts.ts";

type ServiceKeyOperations = Pick<Directory, "addServiceKey" | "retireServiceKey" | "listServiceKeys">;

/** Operations on service keys. */
export function serviceKeyOperations(parts: DirectoryParts): ServiceKeyOperations {
  return {
    async addServiceKey(order) {
      assertOrder(order);
      const key = newKey(parts);
      await parts.change({ kind: "add-service-key", key, actor: order.actor });
      const made = parts.replica.listServiceKeys().find(({ id }) => id === key.id);
      if (made === undefined) throw new ProtocolError("service_key_not_found");
      return made;
    },
    async retireServiceKey(id, order) {
      assertOrder(order);
      await parts.change({ kind: "retire-service-key", id });
    },
    listServiceKeys: async () => (await parts.upToDate()).listServiceKeys(),
  };
}

/** Makes the first service key of a directory that was founded before there were any. Rejects as every change does. */
export async function ensureServiceKey(parts: DirectoryParts): Promise<void> {
  if (parts.replica.listServiceKeys().length > 0) return;
  await parts.change({ kind: "mint-service-key", key: newKey(parts) });
}

/** The same as a directory is opened; where that cannot be changed now, the node's registration will. */
export async function ensureServiceKeyAtOpening(parts: DirectoryParts): Promise<void> {
  try {
    await ensureServiceKey(parts);
  } catch (error) {
    if (!isDirectoryAway(error)) throw error;
  }
}

function newKey({ replica, vault, runtime }: DirectoryParts) {
  return mintServiceKey(replica.residency(), vault, runtime);
}
