// Live links whose home is placed elsewhere: who follows is told where to, the others are registered there in silence.
//
// Spec: L21, L20; design "Moves".
// I1  A client is sent to the new owner only after that has said it knows, or 2 s.
// I2  Who does not follow, or dialled a host that leads to the new owner, keeps its link and its generation.
// I3  Two shards that both deny a home send a link back and forth OWNER_HOPS_MAX times at most; then it is told to come back.

import { CLOSE_CODE, type HomeId } from "@moor/protocol";
import type { TimerHandle } from "@moor/runtime";
import type { NotOwner } from "../../peer/peer-link.ts";
import { OWNER_HOPS_MAX } from "../../server-limits.ts";
import type { LinkContext } from "./link-context.ts";
import { routeOf } from "./link-handshake.ts";
import { CATCH_UP_WAIT_MS, MOVE_ACK_WAIT_MS } from "./link-limits.ts";
import type { LinkSession, VerifiedLink } from "./link-session.ts";

/** What moves need of the table. */
export interface MovedLinks {
  readonly context: LinkContext;
  linksOf(home: HomeId): readonly LinkSession[];
  /** Registers a link with its owner; its app is told when that is out of reach. */
  registerAgain(session: LinkSession, link: VerifiedLink): void;
}

export class LinkMoves {
  readonly #table: MovedLinks;
  /** Homes whose new owner is asked whether it knows. */
  readonly #asked = new Map<HomeId, { readonly revision: number; readonly timer: TimerHandle }>();

  constructor(table: MovedLinks) {
    this.#table = table;
  }

  /** A home was placed elsewhere, or came back. */
  placementChanged(home: HomeId): void {
    const shard = this.#table.context.placements.best(home)?.shard;
    for (const session of this.#table.linksOf(home)) {
      const { link } = session;
      if (link !== undefined && link.port?.shard !== shard) this.#move(session, link);
    }
  }

  /** The shard of a live link says that it does not own its home. */
  notOwner(session: LinkSession, link: VerifiedLink, { placement }: NotOwner): void {
    const { placements, catchUp } = this.#table.context;
    const { home, port } = link;
    if (placement !== undefined) placements.learn(home, placement);
    link.hops += 1;
    if (link.hops > OWNER_HOPS_MAX) return this.#sendAway(session);
    // It is registered nowhere now: should the home come back there, it must be registered again.
    link.port = undefined;
    if (placements.best(home)?.shard !== port?.shard) return this.#move(session, link);
    void catchUp(CATCH_UP_WAIT_MS).then(() => {
      if (session.link === link && link.port === undefined) this.#move(session, link);
    });
  }

  close(): void {
    for (const { timer } of this.#asked.values()) this.#table.context.runtime.cancel(timer);
    this.#asked.clear();
  }

  #move(session: LinkSession, link: VerifiedLink): void {
    if (routeOf(this.#table.context, session, link).kind !== "redirect")
      return this.#table.registerAgain(session, link);
    this.#askOwner(link.home);
  }

  /** Asks the new owner for the home's snapshot: any answer shows that it has heard of the placement. */
  #askOwner(home: HomeId): void {
    const { placements, shardPort, runtime } = this.#table.context;
    const placement = placements.best(home);
    if (placement === undefined || this.#asked.get(home)?.revision === placement.revision) return;
    const { revision } = placement;
    const timer = runtime.schedule(MOVE_ACK_WAIT_MS, () => this.#ownerKnows(home, revision));
    this.#asked.set(home, { revision, timer });
    shardPort(placement.shard)?.readNow(home, placement, ({ kind }) => {
      if (kind === "snapshot" || kind === "none") this.#ownerKnows(home, revision);
    });
  }

  #ownerKnows(home: HomeId, revision: number): void {
    const asked = this.#asked.get(home);
    if (asked?.revision !== revision) return;
    const { context } = this.#table;
    context.runtime.cancel(asked.timer);
    this.#asked.delete(home);
    const shard = context.placements.best(home)?.shard;
    for (const session of this.#table.linksOf(home)) {
      const { link } = session;
      if (link === undefined || link.port?.shard === shard) continue;
      const route = routeOf(context, session, link);
      if (route.kind === "redirect") session.close(CLOSE_CODE.wrongShard, route.host);
      else this.#table.registerAgain(session, link);
    }
  }

  #sendAway(session: LinkSession): void {
    session.close(CLOSE_CODE.restart, String(this.#table.context.spreadMs()));
  }
}
