// A connection to PostgreSQL that comes back by itself: also when it was refused before its first use.

import { ConfigError, createSilentLogger, Secret } from "@moor/runtime";
import { expect, onTestFinished, test } from "vitest";
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

  test("what is asked at once is asked in turn: the driver warns of nothing, and a refused statement fails alone", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on("warning", onWarning);
    onTestFinished(() => void process.off("warning", onWarning));
    const link = new PostgresLink({
      url: new Secret(server().url(await createMigrated(server()))),
      name: "test",
      logger: createSilentLogger(),
    });
    const ask = (sql: string) => link.use((session) => session.rows(sql));
    const answers = await Promise.allSettled([ask("select 1 as n"), ask("select 1/0"), ask("select 2 as n")]);
    expect(answers).toEqual([
      { status: "fulfilled", value: [{ n: 1 }] },
      { status: "rejected", reason: expect.objectContaining({ kind: "statement", reason: "22012" }) },
      { status: "fulfilled", value: [{ n: 2 }] },
    ]);
    expect(warnings).toEqual([]);
    await link.close();
  });

  test("what waits for a connection that breaks fails with it, and the next has another", async () => {
    const link = new PostgresLink({
      url: new Secret(server().url(await createMigrated(server()))),
      name: "test",
      logger: createSilentLogger(),
    });
    const ask = (sql: string) => link.use((session) => session.rows(sql));
    const answers = await Promise.allSettled([
      ask("select pg_terminate_backend(pg_backend_pid())"),
      ask("select 1 as n"),
    ]);
    const broken = { status: "rejected", reason: expect.objectContaining({ kind: "connection" }) };
    expect(answers).toEqual([broken, broken]);
    expect(await ask("select 2 as n")).toEqual([{ n: 2 }]);
    await link.close();
  });
});
