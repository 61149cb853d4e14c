// The shared store: PostgreSQL over four connections of this node: changes, leases, reads, and the feed.
//
// Spec: R22.
// I1  Leases never wait behind changes: their connection and their rows are their own.

import type { FeedReplica } from "./feed-replica.ts";
import { Ledger } from "./ledger.ts";
import type { LocalReplica } from "./local-replica.ts";
import type { MutationOutcome } from "./mutation-steps.ts";
import { mutationSteps, type Mutation } from "./mutations.ts";
import type { RenewLeases, TryLead } from "./mutations/node-mutations.ts";
import { databaseMs, runStepsOn } from "./postgres-batch.ts";
import { PostgresFailure, type PostgresLink } from "./postgres-link.ts";
import type { PostgresWriter } from "./postgres-writer.ts";
import type { Query, Row } from "./statements.ts";
import { throwIfRegressed, unreachable, type Store } from "./store.ts";

/** The store of a shared directory. */
export class PostgresStore implements Store {
  readonly #writer: PostgresWriter;
  readonly #links: {
    readonly changes: PostgresLink;
    readonly leases: PostgresLink;
    readonly reads: PostgresLink;
  };
  readonly #feed: FeedReplica;
  readonly #replica: LocalReplica;
  readonly #release: () => void;

  constructor(options: {
    readonly writer: PostgresWriter;
    readonly links: {
      readonly changes: PostgresLink;
      readonly leases: PostgresLink;
      readonly reads: PostgresLink;
    };
    readonly feed: FeedReplica;
    readonly replica: LocalReplica;
    /** Lets another process have the folder. */
    readonly release: () => void;
  }) {
    this.#writer = options.writer;
    this.#links = options.links;
    this.#feed = options.feed;
    this.#replica = options.replica;
    this.#release = options.release;
  }

  async commit(mutation: Mutation): Promise<MutationOutcome> {
    throwIfRegressed(this.#feed.health);
    const outcome = await this.#writer.commit(mutation);
    // The writer met less than this node has seen: the feed finds out the same and says it.
    if (outcome.kind === "refused" && outcome.code === "directory_regressed") this.#feed.wake();
    return outcome;
  }

  commitLease(mutation: RenewLeases | TryLead): Promise<MutationOutcome> {
    return asked(async () =>
      this.#links.leases.use(async (session) => {
        const ledger = new Ledger(undefined, await databaseMs(session), "");
        return runStepsOn(session, mutationSteps(mutation, ledger));
      }),
    );
  }

  read(query: Query): Promise<readonly Row[]> {
    return asked(async () => this.#links.reads.use((session) => session.rows(query.sql, query.params)));
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.#feed.close();
    await Promise.all(Object.values(this.#links).map((link) => link.close()));
    this.#replica.close();
    this.#release();
  }
}

/** A failure of the database as the protocol's error. */
export async function asked<Value>(ask: () => Promise<Value>): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PostgresFailure) throw unreachable(`the database failed (${error.reason})`);
    throw error;
  }
}
