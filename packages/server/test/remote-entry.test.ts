// Claims at the entry of another node: each is answered, whatever that node says.

import { expect, test } from "vitest";
import { parseInstanceId, type InstanceId } from "@moor/protocol";
import type { CallId, ClaimOutcome, EntryId, PollId } from "../src/peer/peer-link.ts";
import { MalformedHead, type RawHead } from "../src/peer/peer-messages.ts";
import { RemoteEntry } from "../src/peer/remote-entry.ts";
import type { PeerMessage } from "../src/peer/transport/peer-network.ts";
import { INSTANCE_A } from "./support/simulated-node.ts";

const CALL = "call_1" as CallId;
const CLAIMANT = {
  pollId: "poll_1" as PollId,
  entry: "e1" as EntryId,
  instance: parseInstanceId(INSTANCE_A) as InstanceId,
};

function claim(reply: PeerMessage | undefined) {
  const sent: RawHead[] = [];
  const answered: ClaimOutcome[] = [];
  const remote = new RemoteEntry({
    entry: "e2" as EntryId,
    send: () => true,
    sendSurely: (head) => void sent.push(head),
    ask: (_head, onReply) => onReply(reply),
  });
  const claiming = () => remote.claimCall(CALL, CLAIMANT, (outcome) => void answered.push(outcome));
  return { claiming, answered, sent };
}

test("a claim without a reply finds the call busy", () => {
  const { claiming, answered, sent } = claim(undefined);
  claiming();
  expect([answered, sent]).toEqual([[{ kind: "busy" }], []]);
});

test.each<[string, RawHead]>([
  ["without an outcome", {}],
  ["with a grant that has no members", { outcome: "granted", remainingMs: 1 }],
  ["with a grant that has no time", { outcome: "granted", members: "" }],
])("a malformed reply, %s, ends the claim and leaves the call claimable", (_, head) => {
  const { claiming, answered, sent } = claim({ head });
  expect(claiming).toThrow(MalformedHead);
  expect(answered).toEqual([{ kind: "busy" }]);
  expect(sent).toMatchObject([{ t: "settle", call: CALL, poll: "poll_1", outcome: "not-written" }]);
});
