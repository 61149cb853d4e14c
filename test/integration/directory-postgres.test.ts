// The shared directory: the contract on PostgreSQL.

import { directoryContract } from "../../packages/server/test/directory-contract.ts";
import { createMigrated, describePostgres, openNode } from "./postgres-kit.ts";

describePostgres("PostgreSQL", (server) => {
  directoryContract("PostgreSQL", async () => {
    const name = await createMigrated(server());
    const node = await openNode(server().url(name));
    return { ...node, close: node.remove };
  });
});
