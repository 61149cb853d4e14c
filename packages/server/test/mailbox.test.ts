// A mailbox alone: what it remembers when nobody tells it the end.

import { expect, test } from "vitest";
import { DEFAULT_CHANNEL, parseInstanceId, type InstanceId, type TunnelId } from "@moor/protocol";
import { VirtualRuntime } from "@moor/testkit";
import { offerEnd } from "../src/peer/offer-end.ts";
import type {
  CallId,
  EntryId,
  EntryPort,
  KnownPlacement,
  PollId,
  ShardPort,
  SubmittedCall,
} from "../src/peer/peer-link.ts";
import { Mailbox } from "../src/shard/mailbox/mailbox.ts";
import { UNKNOWN_TUNNEL } from "./directory-contract.ts";
import { INSTANCE_A } from "./support/simulated-node.ts";

const ENTRY = "e1" as EntryId;
const PLACEMENT = { shard: "s1", revision: 1 } as KnownPlacement;
const tunnel: TunnelId = UNKNOWN_TUNNEL;

const call = (remainingMs: number): SubmittedCall => ({
  callId: "call_1" as CallId,
  entry: ENTRY,
  tunnel,
  channel: DEFAULT_CHANNEL,
  payloadBytes: 1,
  remainingMs,
  pinnedTo: undefined,
  placement: PLACEMENT,
});

test("a handed-out call whose entry never says its end is remembered until its deadline, and no longer", () => {
  const runtime = new VirtualRuntime(1);
  const mailbox = new Mailbox({
    runtime,
    entries: () => ({ offerCalls: () => {} }) as unknown as EntryPort,
    port: {} as ShardPort,
    wasSeen: true,
    graceUntilMs: Number.POSITIVE_INFINITY,
  });
  const pollId = "poll_1" as PollId;
  mailbox.submitCall(call(10_000));
  mailbox.registerPoll({
    pollId,
    entry: ENTRY,
    tunnel,
    keyId: "key_1",
    channels: new Set(),
    limit: 1,
    instance: parseInstanceId(INSTANCE_A) as InstanceId,
    placement: PLACEMENT,
  });
  mailbox.offerEnded(pollId, offerEnd({ written: ["call_1" as CallId] }));
  mailbox.dropEntry(ENTRY);

  // A call that an agent has is not taken again.
  const isTakenAgain = () => {
    mailbox.sweep();
    mailbox.submitCall(call(60_000));
    return mailbox.queuedCount > 0;
  };
  runtime.advance(9_999);
  expect(isTakenAgain()).toBe(false);
  runtime.advance(1);
  expect(isTakenAgain()).toBe(true);
});
