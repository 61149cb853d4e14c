// A connection to PostgreSQL that comes back by itself: also when it was refused before its first use.

import { ConfigError, createSilentLogger, Secret } from "@moor/runtime";
import { expect, test } from "vitest";
import { PostgresLink } from "../../packages/server/src/directory/postgres-link.ts";
import { assertSchema } from "../../packages/server/src/directory/postgres-schema.ts";
import { createMigrated, describePostgres, runSql } from "./postgres-kit.ts";

describePostgres("a link", (server) => {
  test("a link whose database has another schema at first works once it has the right one", async () => {
    const database = await createMigrated(server());
    await runSql(server(), database, "alter table migrations rename to hidden");
    const link = new PostgresLink({
      url: new Secret(server().url(database)),
      name: "test",
      logger: createSilentLogger(),
      onConnect: assertSchema,
    });
    const ask = () => link.use((session) => session.rows("select 1 as one"));
    await expect(ask()).rejects.toBeInstanceOf(ConfigError);
    await expect(ask()).rejects.toBeInstanceOf(ConfigError);
    await runSql(server(), database, "alter table hidden rename to migrations");
    expect(await ask()).toEqual([{ one: 1 }]);
    await link.close();
  });
});
