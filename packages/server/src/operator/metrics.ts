// The node's metrics: typed, with every label value known beforehand.
//
// I1  Labels are closed unions: no tunnel, key, address or header value is ever a label.
// I2  Every series exists from the start with value 0, so that a rate over a restart is right.

import {
  HANDSHAKE_OUTCOMES,
  LINK_CLOSES,
  LINK_ROLES,
  ONE_SHOT_OUTCOMES,
  type LinkMetrics,
  type LinkRole,
} from "../entry/link/link-metrics.ts";
import { LINK_ENDS, type LinkEnd } from "../peer/transport/link-end.ts";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** How a call ended, as its caller saw it. */
export const CALL_OUTCOMES = [
  "answered", // a final of the agent, whatever its status
  "acknowledged", // a notification or response taken by the agent
  "deadline", // 504
  "unknown", // 502: handed out, and nobody knows what became of it
  "bad_answer", // 502: the agent's final was invalid or too large
  "not_connected", // 503 tunnel_client_not_connected
  "not_seen", // 503 tunnel_client_not_seen
  "queue_full", // 429
  "overloaded", // 503: the node's or tunnel's budget
  "draining", // 503: the node is leaving
  "refused", // 4xx before it became a call
  "caller_gone", // the caller hung up
  "failed", // 500 and every other ending
] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** How a poll ended. */
export const POLL_OUTCOMES = [
  "commands", // 200
  "empty", // 204 after its wait
  "moved", // 204 or 409 because the tunnel's placement changed
  "agent_gone", // the agent hung up
  "revoked", // 401 while waiting
  "refused", // 4xx at once
  "draining", // 503: the node is leaving
  "failed", // every other ending
] as const;
export type PollOutcome = (typeof POLL_OUTCOMES)[number];

/** What an agent posted. */
export const RESPONSE_TYPES = [
  "jsonrpc_response",
  "jsonrpc_notify",
  "notify_ack",
  "session_termination_response",
  "oauth_discovery_response",
  "unreadable",
] as const;
export type ResponseTypeLabel = (typeof RESPONSE_TYPES)[number];

/** What became of an agent's post. */
export const RESPONSE_OUTCOMES = [
  "accepted",
  "not_pending", // 404
  "mismatch", // 401 tunnel_request_mismatch
  "invalid", // 400
  "too_large", // 413
  "unauthorized", // 401, 403
  "failed",
] as const;
export type ResponseOutcome = (typeof RESPONSE_OUTCOMES)[number];

/** What became of a poll that reached a shard which does not own its tunnel. */
export const CORRECTION_OUTCOMES = ["followed", "corrected", "given_up"] as const;
export type CorrectionOutcome = (typeof CORRECTION_OUTCOMES)[number];

/** What became of a change asked of the directory. */
export const MUTATION_OUTCOMES = ["committed", "refused", "unavailable"] as const;
export type MutationOutcome = (typeof MUTATION_OUTCOMES)[number];

/** How a command of a home ended for whoever waited for it. Spec L31. */
export const COMMAND_ENDINGS = [
  "result",
  "unknown", // the box may have it, and nobody knows what became of it
  "not_delivered", // no box, or too much open
  "expired", // its TTL was over before a box had it
  "given_back", // to its entry: the home is another shard's
] as const;
export type CommandEndingLabel = (typeof COMMAND_ENDINGS)[number];

/** Status classes of the operator listener's answers. */
export const STATUS_CLASSES = ["2xx", "4xx", "5xx"] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

/** A counter with one closed label. */
export interface LabelledCounter<Label extends string> {
  inc(label: Label): void;
}

/** A gauge with one closed label. */
export interface LabelledGauge<Label extends string> {
  readonly gauge: Gauge;
  set(label: Label, value: number): void;
}

/** Everything a node counts. Gauges take `inc`, `dec` and `set`. */
export interface Metrics {
  /** What `/metrics` prints. */
  readonly registry: Registry;
  readonly callsEnded: LabelledCounter<CallOutcome>;
  /** Seconds from the caller's head to the end of the answer. */
  readonly callDurationSeconds: { observe(seconds: number): void };
  /** Calls waiting for a poll, this node's shards. */
  readonly callsQueued: Gauge;
  /** Calls whose caller this node holds. */
  readonly callsHeld: Gauge;
  /** Bytes of call and answer bodies this node holds. */
  readonly callBytesHeld: Gauge;
  readonly pollsEnded: LabelledCounter<PollOutcome>;
  /** Polls this node holds. */
  readonly pollsWaiting: Gauge;
  readonly commandsHandedOut: { inc(count?: number): void };
  /** Hand-outs that came back because the poll was gone before the first byte. */
  readonly commandsNotWritten: { inc(count?: number): void };
  readonly responses: { inc(type: ResponseTypeLabel, outcome: ResponseOutcome): void };
  readonly corrections: LabelledCounter<CorrectionOutcome>;
  /** Links a second that a drain would count on. */
  readonly acceptRate: Gauge;
  /** Links of homes that this node's shards own, whichever node holds them. Set when asked. */
  readonly homeLinks: LabelledGauge<LinkRole>;
  readonly commandsEnded: LabelledCounter<CommandEndingLabel>;
  /** Box links that a newer one of the same home took the place of. Spec L23. */
  readonly linkReplacements: { inc(count?: number): void };
  /** Signatures of boxes that wait to be checked, or are. Set when asked. */
  readonly linkSignatures: Gauge;
  /** What the links of this node's entry count. */
  readonly linkPlane: LinkMetrics;
  readonly directoryMutations: LabelledCounter<MutationOutcome>;
  readonly operatorRequests: LabelledCounter<StatusClass>;
  /** Ends of connections to other nodes, those that never became a link included. */
  readonly peerLinkEnds: LabelledCounter<LinkEnd>;
}

/** Bounds of the call duration histogram, seconds: from in-memory speed to the longest command deadline (T7). */
const CALL_DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300, 900];

/**
 * Metrics in a registry of their own, so that several nodes of one process do not collide.
 *
 * @param options.withProcess also count the process itself (CPU, memory, event loop). Default true; one of several
 *   nodes in a process is enough.
 */
export function createMetrics(options: { readonly withProcess?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.withProcess ?? true) collectDefaultMetrics({ register: registry, prefix: "moor_" });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] });
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] });
  const labelled = <Label extends string>(name: string, help: string, labels: readonly Label[]) =>
    createLabelledCounter(registry, name, help, labels);
  return {
    registry,
    callsEnded: labelled("moor_calls_ended_total", "Calls by how they ended.", CALL_OUTCOMES),
    callDurationSeconds: new Histogram({
      name: "moor_call_duration_seconds",
      help: "From a call's arrival to the end of its answer.",
      buckets: CALL_DURATION_BUCKETS,
      registers: [registry],
    }),
    callsQueued: gauge("moor_calls_queued", "Calls waiting for a poll."),
    callsHeld: gauge("moor_calls_held", "Calls whose caller waits at this node."),
    callBytesHeld: gauge("moor_call_bytes_held", "Bytes of call and answer bodies in memory."),
    pollsEnded: labelled("moor_polls_ended_total", "Polls by how they ended.", POLL_OUTCOMES),
    pollsWaiting: gauge("moor_polls_waiting", "Polls held by this node."),
    commandsHandedOut: counter("moor_commands_handed_out_total", "Commands written to a poll."),
    commandsNotWritten: counter("moor_commands_not_written_total", "Hand-outs that returned to the queue."),
    responses: createResponseCounter(registry),
    corrections: labelled(
      "moor_corrections_total",
      "Polls at a shard that is not the owner.",
      CORRECTION_OUTCOMES,
    ),
    acceptRate: gauge(
      "moor_link_accept_rate",
      "Links a second this node can accept when it does nothing else.",
    ),
    homeLinks: createLabelledGauge(registry, LINK_ROLES, {
      name: "moor_home_links",
      help: "Links of the homes that this node's shards own.",
      label: "role",
    }),
    commandsEnded: createLabelledCounter(
      registry,
      "moor_commands_total",
      "Commands of homes by how they ended for whoever waited.",
      COMMAND_ENDINGS,
      "ending",
    ),
    linkReplacements: counter("moor_link_replacements_total", "Box links replaced by a newer one."),
    linkSignatures: gauge("moor_link_signatures_waiting", "Signatures of boxes that wait to be checked."),
    linkPlane: createLinkMetrics(registry),
    directoryMutations: labelled(
      "moor_directory_mutations_total",
      "Changes asked of the directory.",
      MUTATION_OUTCOMES,
    ),
    peerLinkEnds: labelled("moor_peer_link_ends_total", "Ends of connections to other nodes.", LINK_ENDS),
    operatorRequests: labelled(
      "moor_operator_requests_total",
      "Answers of the operator listener.",
      STATUS_CLASSES,
    ),
  };
}

function createLinkMetrics(registry: Registry): LinkMetrics {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] });
  const counter = <Label extends string>(
    name: string,
    help: string,
    label: string,
    labels: readonly Label[],
  ) => createLabelledCounter(registry, name, help, labels, label);
  return {
    links: createLabelledGauge(registry, LINK_ROLES, {
      name: "moor_links",
      help: "Links of boxes and apps that this node holds.",
      label: "role",
    }),
    handshaking: gauge("moor_links_handshaking", "Links whose handshake is not finished."),
    handshakes: counter(
      "moor_link_handshakes_total",
      "Upgrades and handshakes by how they ended.",
      "outcome",
      HANDSHAKE_OUTCOMES,
    ),
    closes: counter("moor_link_ends_total", "Links that were online by how they ended.", "end", LINK_CLOSES),
    oneShots: counter(
      "moor_one_shots_total",
      "One-shots and snapshots by status.",
      "status",
      ONE_SHOT_OUTCOMES,
    ),
  };
}

/** Makes a gauge read its value when somebody asks for it: one that would cost something to keep, or change unseen. */
export function readAtScrape(gauge: Gauge, read: () => number): void {
  Object.assign(gauge, { collect: () => gauge.set(read()) });
}

/** As `readAtScrape`, for every label. */
export function readLabelsAtScrape<Label extends string>(
  labelled: LabelledGauge<Label>,
  read: () => Readonly<Record<Label, number>>,
): void {
  const collect = () => {
    for (const [label, value] of Object.entries<number>(read())) labelled.set(label as Label, value);
  };
  Object.assign(labelled.gauge, { collect });
}

function createLabelledGauge<Label extends string>(
  registry: Registry,
  labels: readonly Label[],
  { name, help, label }: { readonly name: string; readonly help: string; readonly label: string },
): LabelledGauge<Label> {
  const gauge = new Gauge({ name, help, labelNames: [label], registers: [registry] });
  for (const value of labels) gauge.labels(value).set(0);
  return { gauge, set: (value, count) => gauge.labels(value).set(count) };
}

function createLabelledCounter<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labels: readonly Label[],
  labelName = "outcome",
): LabelledCounter<Label> {
  const counter = new Counter({ name, help, labelNames: [labelName], registers: [registry] });
  const children = new Map(labels.map((label) => [label, counter.labels(label)]));
  for (const child of children.values()) child.inc(0);
  return { inc: (label) => children.get(label)?.inc() };
}

function createResponseCounter(registry: Registry): Metrics["responses"] {
  const counter = new Counter({
    name: "moor_responses_total",
    help: "Agents' posts by type and by what became of them.",
    labelNames: ["type", "outcome"],
    registers: [registry],
  });
  for (const type of RESPONSE_TYPES)
    for (const outcome of RESPONSE_OUTCOMES) counter.labels(type, outcome).inc(0);
  return { inc: (type, outcome) => counter.labels(type, outcome).inc() };
}
