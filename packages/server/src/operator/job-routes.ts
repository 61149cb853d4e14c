// Operator routes of jobs: many moves, made by the leader at a pace.
//
// Design: "Moves".   I1  A job is refused when it is made if its target could take nobody.

import { ProtocolError } from "@moor/protocol";
import { JOB_STATES, type Job, type JobState, type Replica } from "../directory/directory.ts";
import { jobJson } from "./fleet-json.ts";
import { parseJobBody, parseReasonBody } from "./operator-bodies.ts";
import {
  audit,
  change,
  ok,
  orderOf,
  readPage,
  type Handler,
  type OperatorApiOptions,
  type Route,
} from "./operator-route.ts";

/** `/v1/jobs`, `/v1/jobs/{id}` and its abort. */
export function jobRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory, replica } = options;
  const list: Handler = async ({ query }) => {
    const state = readState(query.get("state"));
    const page = readPage(query);
    const jobs = await directory.listJobs(state === undefined ? page : { ...page, state });
    return ok({ jobs: jobs.items.map(jobJson), next: jobs.next });
  };
  const create: Handler = async (request) => {
    const { selector, ratePerS, reason, isForced } = parseJobBody(request.body);
    assertTargets(selector, replica);
    const order = orderOf(request, reason);
    const job = await change(options, directory.createJob({ selector, ratePerS, isForced, ...order }));
    const { from, to } = selector;
    const fields = { job: job.id, from, to, ratePerS, total: job.total, reason, isForced };
    audit(options, "job-created", request, fields);
    return { status: 201, json: jobJson(job) };
  };
  const show: Handler = async (_request, id) => ok(jobJson(await directory.getJob(id)));
  const abort: Handler = async (request, id) => {
    const reason = parseReasonBody(request.body);
    const job = await change(options, directory.abortJob(id, orderOf(request, reason)));
    audit(options, "job-aborted", request, { job: id, moved: job.moved, reason });
    return ok(jobJson(job));
  };
  return [
    { path: /^\/v1\/jobs$/, methods: { GET: list, POST: create } },
    { path: /^\/v1\/jobs\/([^/]+)$/, methods: { GET: show } },
    { path: /^\/v1\/jobs\/([^/]+)\/abort$/, methods: { POST: abort } },
  ];
}

function readState(text: string | null): JobState | undefined {
  if (text === null) return undefined;
  const state = JOB_STATES.find((candidate) => candidate === text);
  if (state !== undefined) return state;
  const message = `state is one of ${JOB_STATES.join(", ")}`;
  throw new ProtocolError("invalid_request", { param: "state", message });
}

function assertTargets({ from, to }: Job["selector"], replica: Replica): void {
  if (replica.shard(from) === undefined) throw noShard(from, "from");
  if (to === "spread") {
    const isAnyLive = replica.shards().some(({ id, state }) => state === "live" && id !== from);
    if (!isAnyLive) throw new ProtocolError("conflict", { message: `no shard but ${from} is live` });
    return;
  }
  if (to === from) {
    throw new ProtocolError("invalid_request", { param: "to", message: "to is another shard than from" });
  }
  const target = replica.shard(to);
  if (target === undefined) throw noShard(to, "to");
  if (target.state !== "live") {
    throw new ProtocolError("conflict", { param: "to", message: `shard ${to} is ${target.state}` });
  }
}

function noShard(id: string, param: string): ProtocolError {
  return new ProtocolError("shard_not_found", { param, message: `there is no shard ${id}` });
}
