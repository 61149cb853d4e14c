// `moor directory check`: whether the rows of a directory fit together.
//
// Spec: R22, R23.

import { integerAt } from "../columns.ts";
import type { DirectoryCheck } from "../directory.ts";
import type { Read, ToolStore } from "./tool-store.ts";

const TABLES = [
  "tunnels",
  "homes",
  "home_apps",
  "enrolments",
  "keys",
  "placements",
  "token_keys",
  "service_keys",
  "shards",
  "nodes",
  "moves",
  "jobs",
  "changes",
];
/** Most problems that are listed. Count. */
const PROBLEMS_MAX = 100;
/** Rows listed of one problem. Count. */
const NAMED_MAX = 20;

/** Statements whose every row is a problem, named by its column `id`. */
const PROBLEMS: readonly { readonly sql: string; readonly say: (id: string) => string }[] = [
  {
    sql: `select tenant as id from placements where substr(tenant, 1, 7) = 'tunnel_'
      and not exists (select 1 from tunnels where tunnels.id = placements.tenant)`,
    say: (id) => `${id} is placed, and there is no such tunnel`,
  },
  {
    sql: "select id from tunnels where not exists (select 1 from placements where placements.tenant = tunnels.id)",
    say: (id) => `tunnel ${id} is placed nowhere`,
  },
  {
    sql: `select tenant as id from placements where substr(tenant, 1, 7) <> 'tunnel_'
      and not exists (select 1 from homes where homes.id = placements.tenant)`,
    say: (id) => `${id} is placed, and there is no such home`,
  },
  {
    sql: "select id from homes where not exists (select 1 from placements where placements.tenant = homes.id)",
    say: (id) => `home ${id} is placed nowhere`,
  },
  {
    sql: `select id from homes where tunnel is not null
      and not exists (select 1 from tunnels where tunnels.id = homes.tunnel)`,
    say: (id) => `home ${id} has a tunnel that is gone`,
  },
  {
    sql: "select min(id) as id from homes where tunnel is not null group by tunnel having count(*) > 1",
    say: (id) => `home ${id} shares its tunnel with another home`,
  },
  {
    sql: "select id from home_apps where not exists (select 1 from homes where homes.id = home_apps.home)",
    say: (id) => `app ${id} was seen at no home`,
  },
  {
    sql: "select id from enrolments where not exists (select 1 from homes where homes.id = enrolments.home)",
    say: (id) => `enrolment code ${id} belongs to no home`,
  },
  {
    sql: `select id from keys where kind in ('app', 'extension')
      and not exists (select 1 from homes where homes.id = keys.tenant)`,
    say: (id) => `token ${id} belongs to no home`,
  },
  {
    sql: `select default_shard as id from residency where default_shard <> ''
      and not exists (select 1 from shards where shards.id = residency.default_shard)`,
    say: (id) => `the default shard ${id} is not known`,
  },
  {
    sql: `select id from keys where kind in ('agent', 'connector')
      and not exists (select 1 from tunnels where tunnels.id = keys.tenant)`,
    say: (id) => `key ${id} belongs to no tunnel`,
  },
  {
    sql: "select tenant as id from placements where not exists (select 1 from shards where shards.id = placements.shard)",
    say: (id) => `${id} is placed on a shard that is not known`,
  },
  {
    sql: "select tenant as id from placements where revision > (select last_revision from residency)",
    say: (id) => `${id} has a revision that was never given out: moor directory fence`,
  },
  {
    sql: `select min(tenant) as id from placements group by revision having count(*) > 1`,
    say: (id) => `${id} shares its revision with another tenant: moor directory fence`,
  },
  {
    sql: `select tenant as id from placements
      where not exists (select 1 from token_keys where token_keys.id = placements.token_key)`,
    say: (id) => `${id} is sealed with a token key that is gone`,
  },
  {
    sql: "select id from jobs where state = 'running' and not exists (select 1 from shards where shards.id = jobs.from_shard)",
    say: (id) => `job ${id} moves tenants of a shard that is not known`,
  },
];

/** Looks at everything. */
export function checkDirectory(store: ToolStore): Promise<DirectoryCheck> {
  return store.view(async (read) => {
    const [head] = await read("select seq, last_revision from residency");
    const counts: Record<string, number> = {};
    for (const table of TABLES) {
      counts[table] = integerAt((await read(`select count(*) as rows_count from ${table}`))[0], "rows_count");
    }
    const problems = head === undefined ? ["the directory is not founded: no node has used it"] : [];
    for (const { sql, say } of PROBLEMS) {
      const rows = await read(`${sql} limit ${NAMED_MAX}`);
      problems.push(...rows.map((row) => say(String(row["id"]))));
    }
    problems.push(...(await numberProblems(read)));
    return {
      counts,
      seq: head === undefined ? 0 : integerAt(head, "seq"),
      lastRevision: head === undefined ? 0 : integerAt(head, "last_revision"),
      problems: problems.slice(0, PROBLEMS_MAX),
    };
  });
}

async function numberProblems(read: Read): Promise<readonly string[]> {
  const problems: string[] = [];
  const [changes] = await read(
    "select count(*) as beyond from changes where seq > (select seq from residency)",
  );
  if (Number(changes?.["beyond"]) > 0) problems.push("the feed holds changes beyond its own number");
  const [keys] = await read("select count(*) as sealing from token_keys where state = 'sealing'");
  const sealing = Number(keys?.["sealing"]);
  if (sealing !== 1) problems.push(`${sealing} token keys seal; one has to`);
  const [services] = await read(
    `select coalesce(sum(case when state = 'active' then 1 else 0 end), 0) as signing, count(*) as total
      from service_keys`,
  );
  // None at all: a directory that no node of this version has opened yet.
  const signing = Number(services?.["signing"]);
  if (signing !== 1 && Number(services?.["total"]) > 0) {
    problems.push(`${signing} service keys sign; one has to`);
  }
  return problems;
}
