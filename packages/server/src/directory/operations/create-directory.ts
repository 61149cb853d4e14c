// The directory over a store: input checked, ids and keys minted, mutations committed, rows turned into records.

import type { Directory } from "../directory.ts";
import type { DirectoryParts } from "./directory-parts.ts";
import { enrolmentOperations } from "./enrolment-operations.ts";
import { homeOperations } from "./home-operations.ts";
import { jobOperations, moveOperations } from "./move-operations.ts";
import { nodeOperations } from "./node-operations.ts";
import { residencyOperations } from "./residency-operations.ts";
import { serviceKeyOperations } from "./service-key-operations.ts";
import { keyOperations, tunnelOperations } from "./tunnel-operations.ts";

/** The directory of `parts`. Closing it closes store and replica. */
export function createDirectory(parts: DirectoryParts): Directory {
  let closing: Promise<void> | undefined;
  return {
    ...tunnelOperations(parts),
    ...keyOperations(parts),
    ...nodeOperations(parts),
    ...moveOperations(parts),
    ...jobOperations(parts),
    ...residencyOperations(parts),
    ...homeOperations(parts),
    ...enrolmentOperations(parts),
    ...serviceKeyOperations(parts),
    close: () => {
      closing ??= parts.store.close();
      return closing;
    },
  };
}
