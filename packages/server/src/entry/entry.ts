// The part of a node that holds client sockets: callers' calls and agents' polls.
//
// Design "Shape": the entry keeps the caller's socket, the body and the deadline; shards only match.
// As an EntryPort it is what shards, local or remote, answer to.

import type { InstanceId, TunnelId } from "@moor/protocol";
import type { Change } from "../directory/directory.ts";
import type { HttpExchange } from "../http/http-exchange.ts";
import type {
  CallId,
  CallRefusal,
  EntryId,
  EntryPort,
  HandedOutCommand,
  PollId,
  ShardPort,
} from "../peer/peer-link.ts";
import { CallTable } from "./call-table.ts";
import type { EntryContext } from "./entry-context.ts";
import { PollTable } from "./poll-table.ts";
import { handlePublicRequest } from "./public-routes.ts";

export class Entry {
  readonly calls: CallTable;
  readonly polls: PollTable;
  readonly #context: EntryContext;
  readonly #stopListening: () => void;

  constructor(context: EntryContext) {
    this.#context = context;
    this.calls = new CallTable(context);
    this.polls = new PollTable(context);
    this.#stopListening = context.replica.onChange((change) => this.#handleChange(change));
  }

  /** Serves one request of the public listener. */
  handle(exchange: HttpExchange, isReady: () => boolean): Promise<void> {
    return handlePublicRequest(
      { context: this.#context, calls: this.calls, polls: this.polls },
      isReady,
      exchange,
    );
  }

  /** What `shard` answers to. */
  portFor(shard: () => ShardPort): EntryPort {
    const { calls, polls } = this;
    const entry: EntryId = this.#context.entry;
    return {
      entry,
      refuseCall: (callId: CallId, refusal: CallRefusal) => calls.refuse(callId, refusal),
      callHandedOut: (callId: CallId, instance: InstanceId) => calls.handedOut(callId, instance),
      handOut: (pollId: PollId, commands: readonly HandedOutCommand[]) =>
        polls.handOut(pollId, commands, shard()),
      endPoll: (pollId, reason) => polls.end(pollId, reason),
    };
  }

  /** Lets waiting polls go, waits for the calls held, then ends what is left. Milliseconds. */
  async drain(graceMs: number): Promise<void> {
    this.polls.release();
    await this.calls.drain(graceMs);
    this.#stopListening();
  }

  #handleChange(change: Change): void {
    const { replica } = this.#context;
    if (change.kind === "key" && (replica.key(change.id)?.isRevoked ?? true))
      this.polls.keyRevoked(change.id);
    if (change.kind === "tunnel" && replica.tunnel(change.id) === undefined) {
      this.calls.tunnelDeleted(change.id as TunnelId);
    }
  }
}
