// A shard as an entry's links see it: takes every link, notes what it is told, and answers on order.

import type { HomeId } from "@moor/protocol";
import type { ShardId } from "../../src/directory/directory.ts";
import type {
  BoxAnswer,
  HomeShardPort,
  LinkEntryPort,
  LinkId,
  LinkRefusal,
  NowOutcome,
  Presence,
  RegisteredLink,
  SubmittedCommand,
} from "../../src/peer/link-ports.ts";

export class FakeHomeShard implements HomeShardPort {
  readonly shard: ShardId;
  readonly links = new Map<LinkId, RegisteredLink>();
  readonly registered: RegisteredLink[] = [];
  readonly commands: SubmittedCommand[] = [];
  /** Everything it was told, one line each. */
  readonly heard: string[] = [];
  presence: Presence = { box: "online", sinceMs: 0 };
  /** What it says to a registration instead of taking it. */
  refusal: LinkRefusal | undefined;
  /** Takes nothing and says nothing while set. */
  isSilent = false;
  now: NowOutcome = { kind: "none" };
  /** Questions about snapshots without an answer yet, while `isSilent`. */
  readonly nowAsked: ((outcome: NowOutcome) => void)[] = [];
  #generation = 100;
  readonly #entry: () => LinkEntryPort;

  constructor(shard: ShardId, entry: () => LinkEntryPort) {
    this.shard = shard;
    this.#entry = entry;
  }

  registerLink(link: RegisteredLink): void {
    this.registered.push(link);
    this.heard.push(`register ${link.role} ${link.home} ${link.generation ?? "new"}`);
    if (this.isSilent) return;
    if (this.refusal !== undefined) return this.#entry().linkRefused(link.linkId, this.refusal, this);
    this.accept(link);
  }

  accept(link: RegisteredLink): void {
    this.links.set(link.linkId, link);
    this.#generation += 1;
    const generation = link.role === "box" ? (link.generation ?? this.#generation) : undefined;
    this.#entry().linkAccepted(link.linkId, { generation, presence: this.presence }, this);
  }

  withdrawLink(home: HomeId, linkId: LinkId, backWithinMs?: number): void {
    this.links.delete(linkId);
    this.heard.push(`withdraw ${home}${backWithinMs === undefined ? "" : ` ${backWithinMs}`}`);
  }

  submitCommand(command: SubmittedCommand): void {
    this.commands.push(command);
    this.heard.push(`submit ${command.id}${command.isAgain ? " again" : ""}`);
  }

  withdrawCommand(home: HomeId, submission: string): void {
    const id = this.commands.find((command) => command.submission === submission)?.id ?? "?";
    this.heard.push(`withdraw-command ${home} ${id}`);
  }

  commandSettled(home: HomeId, _linkId: LinkId, id: string, outcome: string): void {
    this.heard.push(`settled ${home} ${id} ${outcome}`);
  }

  boxAnswered(home: HomeId, _linkId: LinkId, id: string, answer: BoxAnswer): void {
    const what = answer.kind === "result" ? answer.data : answer.outcome;
    this.heard.push(`answered ${home} ${id} ${what}`);
  }

  boxEvent(home: HomeId, _linkId: LinkId, data: string): void {
    this.heard.push(`event ${home} ${data}`);
  }

  boxNow(home: HomeId, _linkId: LinkId, data: string): void {
    this.heard.push(`now ${home} ${data}`);
  }

  readNow(_home: HomeId, _placement: unknown, answer: (outcome: NowOutcome) => void): void {
    if (this.isSilent) this.nowAsked.push(answer);
    else answer(this.now);
  }

  describeHome(_home: HomeId, answer: (status: undefined) => void): void {
    answer(undefined);
  }
}
