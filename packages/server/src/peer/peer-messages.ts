// The messages that nodes exchange, each a small JSON head and at most one raw payload.
//
// Spec: docs/protocol/peer-link.md, "Messages". Design "Shape".
// I1  What a head says is trusted (its sender proved to be a node of this residency) but not its shape: `parseHead`
//     lets nothing through that a handler could trip over.
// I2  Members may be added in a version; a reader ignores those it does not know, and whole messages too.

import {
  parseAppInstance,
  parseChannelName,
  parseCommandId,
  parseHomeId,
  parseInstanceId,
  parseTunnelId,
  type AppInstance,
  type ChannelName,
  type CommandId,
  type HomeId,
  type InstanceId,
  type TunnelId,
} from "@moor/protocol";
import { parseShardId, type ShardId } from "../directory/directory.ts";
import type { LinkId, SubmissionId } from "./link-ports.ts";
import type { CallId, EntryId, KnownPlacement, PollId } from "./peer-link.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

/** A message's head as it stands on the wire, its fields not yet looked at. */
export type RawHead = Readonly<Record<string, unknown>>;

/** Reads the fields of a head; each throws MalformedHead, which the router turns into a log line. */
export const read = {
  text: (head: RawHead, name: string): string => {
    const value = head[name];
    if (typeof value !== "string") throw new MalformedHead(name);
    return value;
  },
  number: (head: RawHead, name: string): number => {
    const value = head[name];
    if (typeof value !== "number" || !Number.isFinite(value)) throw new MalformedHead(name);
    return value;
  },
  optionalNumber: (head: RawHead, name: string): number | undefined =>
    head[name] === undefined ? undefined : read.number(head, name),
  flag: (head: RawHead, name: string): boolean => head[name] === true,
  optionalText: (head: RawHead, name: string): string | undefined => {
    const value = head[name];
    return typeof value === "string" ? value : undefined;
  },
  list: (head: RawHead, name: string): readonly unknown[] => {
    const value = head[name];
    if (!Array.isArray(value)) throw new MalformedHead(name);
    return value;
  },
  object: (head: RawHead, name: string): RawHead => {
    const value = head[name];
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new MalformedHead(name);
    return value as RawHead;
  },
  texts: (head: RawHead, name: string): readonly string[] => {
    const list = read.list(head, name);
    if (!list.every((item) => typeof item === "string")) throw new MalformedHead(name);
    return list;
  },
  tunnel: (head: RawHead): TunnelId => required(parseTunnelId(read.text(head, "tunnel")), "tunnel"),
  shard: (head: RawHead): ShardId => required(parseShardId(read.text(head, "shard")), "shard"),
  channel: (head: RawHead): ChannelName => required(parseChannelName(read.text(head, "channel")), "channel"),
  instance: (head: RawHead): InstanceId => required(parseInstanceId(read.text(head, "instance")), "instance"),
  optionalInstance: (head: RawHead, name: string): InstanceId | undefined => {
    const text = read.optionalText(head, name);
    return text === undefined ? undefined : required(parseInstanceId(text), name);
  },
  call: (head: RawHead): CallId => read.text(head, "call") as CallId,
  calls: (head: RawHead, name: string): readonly CallId[] => read.texts(head, name) as readonly CallId[],
  poll: (head: RawHead): PollId => read.text(head, "poll") as PollId,
  entry: (head: RawHead): EntryId => read.text(head, "entry") as EntryId,
  home: (head: RawHead): HomeId => required(parseHomeId(read.text(head, "home")), "home"),
  link: (head: RawHead): LinkId => read.text(head, "link") as LinkId,
  links: (head: RawHead): readonly LinkId[] => read.texts(head, "links") as readonly LinkId[],
  submission: (head: RawHead): SubmissionId => read.text(head, "submission") as SubmissionId,
  command: (head: RawHead): CommandId => required(parseCommandId(read.text(head, "id")), "id"),
  optionalApp: (head: RawHead): AppInstance | undefined => {
    const text = read.optionalText(head, "app");
    return text === undefined ? undefined : required(parseAppInstance(text), "app");
  },
  /** The payload as the text it is, of 1 to `bytesMax` bytes. */
  payloadText: ({ payload }: PeerMessage, bytesMax: number): string => {
    if (payload === undefined || payload.byteLength > bytesMax) throw new MalformedHead("payload");
    return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8");
  },
  placement: (head: RawHead): KnownPlacement => readPlacement(read.object(head, "placement")),
  optionalPlacement: (head: RawHead): KnownPlacement | undefined =>
    head["placement"] === undefined ? undefined : read.placement(head),
};

/** A field of a message is missing or of another shape. `field` names it. */
export class MalformedHead extends Error {
  readonly field: string;

  constructor(field: string) {
    super(`malformed field ${field}`);
    this.name = "MalformedHead";
    this.field = field;
  }
}

/** A placement as a message carries it: absent members are left out. */
export function encodePlacement(placement: KnownPlacement): RawHead {
  const { shard, revision, tokenKey, tokenFormat } = placement;
  return { shard, revision, ...(tokenKey === undefined ? {} : { tokenKey, tokenFormat }) };
}

function readPlacement(head: RawHead): KnownPlacement {
  const placement = { shard: read.shard(head), revision: read.number(head, "revision") };
  const tokenKey = read.optionalText(head, "tokenKey");
  return tokenKey === undefined
    ? placement
    : { ...placement, tokenKey, tokenFormat: read.number(head, "tokenFormat") };
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw new MalformedHead(field);
  return value;
}
