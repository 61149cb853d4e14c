// `moor move`: one tunnel or home, or all of a shard at a pace; also watching again and ending such a job.
//
// Spec: L22. Design: "Moves".
// I1  A move says which it was: moved (0), not moved (1). Lost in the middle, the directory is asked until it tells.
// I2  A signal ends the watching, never the job.

import type { Command } from "commander";
import { createNodeRuntime } from "@moor/runtime";
import { RefusedError } from "../exit-code.ts";
import { FleetClient, type JobJson, type ShardJson } from "../fleet-client.ts";
import { jobAnswer, moveAnswer } from "../fleet-output.ts";
import { HomeClient } from "../home-client.ts";
import { watchJob } from "../job-watch.ts";
import { explainRefusal, findBlockers, keptBehind, refuseBlocked, warnOfForce } from "../move-blockers.ts";
import { readMoveOrder, type MoveOrderOptions } from "../move-order.ts";
import { settleMove } from "../move-settlement.ts";
import { addOperatorOptions, findOperator, type OperatorOptions } from "../operator-address.ts";
import { jobIdOption, rateOption, shardIdOption, tenantIdOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage } from "../output.ts";
import { stderrProgress } from "../progress-line.ts";

interface MoveOptions extends OperatorOptions, MoveOrderOptions {
  readonly reason?: string;
  readonly detach?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  # one tunnel
  moor move tunnel_0123456789abcdef0123456789abcdef --to s2 --reason "too hot"
  # one home; refused, naming them, while its box or apps do not follow shards
  moor move anna --to s2 --dry-run
  # everything on s1, 50 a second, to one shard or over all others
  moor move --from s1 --to s2 --rate 50/s
  moor move --from s1 --spread --rate 50/s
  # watch it again, or end it; what has moved stays moved
  moor move --resume job_0123456789abcdef01234567
  moor move --abort job_0123456789abcdef01234567
`;

/** Adds `move` to the program. */
export function registerMoveCommand(program: Command): void {
  const move = program
    .command("move")
    .description("move a tunnel or home to another shard, or all of a shard at a pace")
    .argument("[tenant]", "tunnel id or name of a home", tenantIdOption("TENANT"))
    .option("--to <shard>", "shard to move to", shardIdOption("--to"))
    .option("--from <shard>", "move all tunnels and homes of this shard", shardIdOption("--from"))
    .option("--spread", "with --from: spread over the other live shards")
    .option("--rate <n/s>", "with --from: moves a second, 0.01 to 10000", rateOption("--rate"))
    .option("--reason <text>", "why, for `moor moves` and `moor why`")
    .option(
      "--resume <job>",
      "watch a job again; one that failed or was aborted begins anew",
      jobIdOption("--resume"),
    )
    .option("--abort <job>", "end a job within its batch", jobIdOption("--abort"))
    .option("--force", "move homes too whose box or apps do not follow shards: those are relayed then")
    .option("--detach", "with --from: do not watch the job")
    .option("--dry-run", "only say what would move")
    .option("--json", "print one JSON object");
  addOperatorOptions(move)
    .addHelpText("after", EXAMPLES)
    .action((tenant: string | undefined, options: MoveOptions) => runMove(tenant, options));
}

async function runMove(tenant: string | undefined, options: MoveOptions): Promise<void> {
  const order = readMoveOrder(tenant, options);
  const client = new FleetClient(findOperator(options));
  switch (order.kind) {
    case "one":
      return moveOne(client, order.tenant, order.to, options);
    case "many":
      return moveMany(client, order, options);
    case "resume":
      return resume(client, order.job, options);
    case "abort":
      return abort(client, order.job, options);
  }
}

async function moveOne(client: FleetClient, tenant: string, to: string, options: MoveOptions): Promise<void> {
  const { json } = options;
  const before = await client.where(tenant);
  const isAsked = options.dryRun === true || options.force === true;
  const homes = new HomeClient(findOperator(options));
  const blockers = isAsked ? await findBlockers({ fleet: client, homes }, tenant, to) : [];
  if (options.dryRun === true) {
    await findTargets(client, before.shard, to);
    if (blockers.length > 0 && options.force !== true) throw refuseBlocked(tenant, blockers);
    if (json === true) return printJson({ tenant, from: before.shard, to, dryRun: true });
    printAnswer(`would move ${tenant} from ${before.shard} to ${to}`);
    warnOfForce(blockers);
    return printMessage("Nothing was changed.");
  }
  const order = { tenant, to, ...whyAndForce(options) };
  const move = await settleMove(order, { client, runtime: createNodeRuntime(), say: printMessage }).catch(
    (error: unknown) => {
      explainRefusal(tenant, error);
      throw error;
    },
  );
  if (json === true) return printJson(moveAnswer(move));
  printAnswer(`moved ${tenant} from ${move.from ?? "nowhere"} to ${move.to} at revision ${move.revision}`);
  warnOfForce(blockers);
  printMessage(`To undo: moor move ${tenant} --to ${move.from ?? before.shard}`);
}

async function moveMany(
  client: FleetClient,
  { from, to, rate }: { readonly from: string; readonly to: string | undefined; readonly rate: number },
  options: MoveOptions,
): Promise<void> {
  if (options.dryRun === true) return foretell(client, from, to, rate, options);
  const target = to === undefined ? { spread: true } : { to };
  const job = await client.createJob({ from, ...target, rate, ...whyAndForce(options) });
  await follow(client, job, options);
}

async function foretell(
  client: FleetClient,
  from: string,
  to: string | undefined,
  rate: number,
  options: MoveOptions,
): Promise<void> {
  const { source, targets } = await findTargets(client, from, to);
  const total = source.tunnels + source.homes;
  const seconds = Math.ceil(total / rate);
  if (options.json === true) return printJson({ from, targets, total, seconds, dryRun: true });
  printAnswer(`would move ${total} from ${from} to ${targets.join(", ")} in about ${seconds} s`);
  if (source.homes > 0 && options.force !== true) {
    printMessage(`Of its ${source.homes} homes those stay whose box or apps do not follow shards.`);
  }
  printMessage("Nothing was changed.");
}

/** A shard and those that its tenants would go to. Throws RefusedError as the order itself would be refused. */
async function findTargets(
  client: FleetClient,
  from: string,
  to: string | undefined,
): Promise<{ readonly source: ShardJson; readonly targets: readonly string[] }> {
  const { items } = await client.listShards();
  const source = items.find(({ id }) => id === from);
  if (source === undefined) throw new RefusedError("shard_not_found", `there is no shard ${from}`);
  if (to !== undefined && !items.some(({ id }) => id === to)) {
    throw new RefusedError("shard_not_found", `there is no shard ${to}`);
  }
  const live = items.filter(({ id, state }) => state === "live" && id !== from).map(({ id }) => id);
  const targets = to === undefined ? live : live.filter((id) => id === to);
  if (targets.length > 0) return { source, targets };
  const why =
    to === undefined ? `no shard but ${from} is live` : `shard ${to} is not a live one besides ${from}`;
  throw new RefusedError("conflict", why);
}

/** A job that runs is watched; one that ended before its work was done begins anew with what is left. */
async function resume(client: FleetClient, id: string, options: MoveOptions): Promise<void> {
  const job = await client.showJob(id);
  if (job.state === "running" || job.state === "done") return follow(client, job, options);
  const target = job.to === null ? { spread: true } : { to: job.to };
  const why = options.reason ?? `goes on from ${id}`;
  const next = await client.createJob({
    from: job.from,
    ...target,
    rate: options.rate ?? job.rate,
    reason: why,
    ...(options.force === true || job.forced ? { force: true } : {}),
  });
  printMessage(`${id} was ${job.state}; what is left moves as ${next.id}`);
  await follow(client, next, options);
}

async function abort(client: FleetClient, id: string, options: MoveOptions): Promise<void> {
  const job = await client.abortJob(id, options.reason);
  if (options.json === true) return printJson(jobAnswer(job));
  printAnswer(`aborted ${id}: ${job.moved} of ${job.total} have moved and stay where they are`);
  printMessage(`To go on: moor move --resume ${id}`);
}

function whyAndForce({ reason, force }: MoveOptions): { readonly reason?: string; readonly force?: boolean } {
  return { ...(reason === undefined ? {} : { reason }), ...(force === true ? { force } : {}) };
}

/** Watches a job to its end, unless told not to. */
async function follow(client: FleetClient, job: JobJson, options: MoveOptions): Promise<void> {
  const hint = `To watch: moor move --resume ${job.id}. To end it: moor move --abort ${job.id}`;
  if (options.detach === true) {
    if (options.json === true) return printJson(jobAnswer(job));
    printAnswer(`${job.id} moves ${job.total} from ${job.from}`);
    return printMessage(hint);
  }
  printMessage(`${job.id}: ${job.total} tenants. ${hint}`);
  const ended = await watchUntilSignal(client, job);
  if (options.json === true) printJson(jobAnswer(ended));
  else if (ended.state === "done")
    printAnswer(`moved ${ended.moved} from ${ended.from}: ${ended.id} is done`);
  if (ended.state === "done" && ended.blocked > 0) throw keptBehind(ended);
  if (ended.state === "done") return;
  throw new RefusedError(
    `job_${ended.state}`,
    `${ended.moved} of ${ended.total} have moved${ended.error === null ? "" : `: ${ended.error}`}`,
  );
}

/** A signal ends the process as it would have without a watch, after saying that the job goes on (I2). */
async function watchUntilSignal(client: FleetClient, job: JobJson): Promise<JobJson> {
  const leave = (signal: NodeJS.Signals) => {
    printMessage(`\nThe job goes on. To watch: moor move --resume ${job.id}`);
    process.kill(process.pid, signal);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, leave);
  try {
    return await watchJob(job, { client, runtime: createNodeRuntime(), output: stderrProgress() });
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, leave);
  }
}
