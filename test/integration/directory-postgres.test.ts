// The shared directory: the contracts on PostgreSQL.

import { directoryContract, type OpenForTest } from "../../packages/server/test/directory-contract.ts";
import { fleetContract } from "../../packages/server/test/fleet-contract.ts";
import { createMigrated, describePostgres, openNode } from "./postgres-kit.ts";

describePostgres("PostgreSQL", (server) => {
  const openEmpty: OpenForTest = async () => {
    const name = await createMigrated(server());
    const node = await openNode(server().url(name));
    return { ...node, close: node.remove };
  };
  directoryContract("PostgreSQL", openEmpty);
  fleetContract("PostgreSQL", openEmpty);
});
