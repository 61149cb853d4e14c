// The shared directory: the contracts on PostgreSQL.

import { directoryContract, type OpenForTest } from "../../packages/server/test/directory-contract.ts";
import { fleetContract } from "../../packages/server/test/fleet-contract.ts";
import { homeContract } from "../../packages/server/test/home-contract.ts";
import { createMigrated, describePostgres, openNode, runSql } from "./postgres-kit.ts";

describePostgres("PostgreSQL", (server) => {
  const openEmpty: OpenForTest = async () => {
    const name = await createMigrated(server());
    const node = await openNode(server().url(name));
    const tamper = async (sql: string) => void (await runSql(server(), name, sql));
    return { ...node, tamper, close: node.remove };
  };
  directoryContract("PostgreSQL", openEmpty);
  fleetContract("PostgreSQL", openEmpty);
  homeContract("PostgreSQL", openEmpty);
});
