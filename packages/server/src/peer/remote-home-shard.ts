// A shard of another node, as this node's entry talks to it about links and commands.
//
// Spec: docs/protocol/peer-link.md. Everything but events is kept until the other process took it; a command that cannot
// be sent now is not sent at all, so that its entry may say so.

import type { CommandId, HomeId } from "@moor/protocol";
import type { ShardId } from "../directory/directory.ts";
import { encodeBoxAnswer, readHomeStatus, readNow, withText } from "./link-codec.ts";
import type {
  BoxAnswer,
  HomeShardPort,
  HomeStatus,
  LinkEntryPort,
  LinkId,
  NowOutcome,
  RegisteredLink,
  SubmissionId,
  SubmittedCommand,
} from "./link-ports.ts";
import type { KnownPlacement } from "./peer-link.ts";
import { encodePlacement, type RawHead } from "./peer-messages.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

export interface RemoteHomeShardOptions {
  readonly shard: ShardId;
  /** This node's entry, which hears of refusals. */
  readonly entry: () => LinkEntryPort;
  /** Sends to the node that runs the shard; `false` = not possible now. */
  readonly send: (message: PeerMessage) => boolean;
  /** Sends what must arrive while that node lives. */
  readonly sendSurely: (message: PeerMessage) => void;
  /** Asks the node; `undefined` when there is no answer in time. */
  readonly ask: (head: RawHead, onReply: (reply: PeerMessage | undefined) => void) => void;
}

export class RemoteHomeShard implements HomeShardPort {
  readonly shard: ShardId;
  readonly #options: RemoteHomeShardOptions;

  constructor(options: RemoteHomeShardOptions) {
    this.shard = options.shard;
    this.#options = options;
  }

  registerLink(link: RegisteredLink): void {
    const { linkId, home, role, app, isFollowing, credential, seenSeq, generation, placement } = link;
    const fields = {
      home,
      link: linkId,
      role,
      ...(app === undefined ? {} : { app }),
      isFollowing,
      credential,
      ...(seenSeq === undefined ? {} : { seenSeq }),
      ...(generation === undefined ? {} : { generation }),
      placement: encodePlacement(placement),
    };
    this.#options.sendSurely({ head: this.#head("register-link", fields) });
  }

  withdrawLink(home: HomeId, linkId: LinkId, backWithinMs?: number): void {
    const back = backWithinMs === undefined ? {} : { backWithinMs };
    this.#options.sendSurely({ head: this.#head("withdraw-link", { home, link: linkId, ...back }) });
  }

  submitCommand(command: SubmittedCommand): void {
    const { submission, home, id, app, remainingMs, data, placement, isAgain } = command;
    const head = this.#head("submit-command", {
      submission,
      home,
      id,
      ...(app === undefined ? {} : { app }),
      remainingMs,
      placement: encodePlacement(placement),
      ...(isAgain ? { isAgain } : {}),
    });
    if (this.#options.send(withText(head, data))) return;
    this.#options
      .entry()
      .commandEnded(submission, isAgain ? { kind: "unknown" } : { kind: "not-delivered", why: "busy" });
  }

  withdrawCommand(home: HomeId, submission: SubmissionId): void {
    this.#options.sendSurely({ head: this.#head("withdraw-command", { home, submission }) });
  }

  commandSettled(home: HomeId, linkId: LinkId, id: CommandId, outcome: "written" | "not-written"): void {
    this.#options.sendSurely({ head: this.#head("command-settled", { home, link: linkId, id, outcome }) });
  }

  boxAnswered(home: HomeId, linkId: LinkId, id: CommandId, answer: BoxAnswer): void {
    const head = this.#head("box-answered", { home, link: linkId, id });
    this.#options.sendSurely(encodeBoxAnswer(head, answer));
  }

  boxEvent(home: HomeId, linkId: LinkId, data: string): void {
    this.#options.send(withText(this.#head("box-event", { home, link: linkId }), data));
  }

  boxNow(home: HomeId, linkId: LinkId, data: string): void {
    this.#options.sendSurely(withText(this.#head("box-now", { home, link: linkId }), data));
  }

  readNow(home: HomeId, placement: KnownPlacement, answer: (outcome: NowOutcome) => void): void {
    const head = this.#head("read-now", { home, placement: encodePlacement(placement) });
    this.#options.ask(head, (reply) => answer(readNow(reply)));
  }

  describeHome(home: HomeId, answer: (status: HomeStatus | undefined) => void): void {
    this.#options.ask(this.#head("describe-home", { home }), (reply) => answer(readHomeStatus(reply)));
  }

  #head(t: string, fields: RawHead): RawHead {
    return { t, shard: this.shard, ...fields };
  }
}
