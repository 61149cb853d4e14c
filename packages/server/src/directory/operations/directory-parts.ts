// What the groups of the directory's operations share.

import { invariant, type Runtime } from "@moor/runtime";
import type { NodeIncarnation } from "../directory.ts";
import type { LocalReplica } from "../local-replica.ts";
import type { Mutation } from "../mutations.ts";
import type { LeaderClaim } from "../mutations/move-mutations.ts";
import type { Row } from "../statements.ts";
import { rowsOf, type Store } from "../store.ts";
import type { TokenKeyVault } from "../token-key-vault.ts";

/** Longest time a list or a look-up waits for the newest changes. Milliseconds. */
const LOOK_WAIT_MS = 1_000;

/** One open directory. */
export class DirectoryParts {
  readonly store: Store;
  readonly replica: LocalReplica;
  readonly runtime: Runtime;
  readonly vault: TokenKeyVault;
  /** This node, once it is registered. */
  self: NodeIncarnation | undefined;

  constructor(parts: {
    readonly store: Store;
    readonly replica: LocalReplica;
    readonly runtime: Runtime;
    readonly vault: TokenKeyVault;
  }) {
    this.store = parts.store;
    this.replica = parts.replica;
    this.runtime = parts.runtime;
    this.vault = parts.vault;
  }

  /** Makes a change; gives its rows, or rejects with its refusal. */
  async change(mutation: Mutation): Promise<readonly Row[]> {
    return rowsOf(await this.store.commit(mutation));
  }

  /** The replica, showing what other nodes committed before now, where the authority can be asked. */
  async upToDate(): Promise<LocalReplica> {
    await this.replica.catchUp(LOOK_WAIT_MS);
    return this.replica;
  }

  /** This node as leader, for statements that check it. */
  leaderClaim(): LeaderClaim {
    invariant(this.self !== undefined, "D9 only a registered node works on jobs");
    return { node: this.self.id, incarnation: this.self.incarnation };
  }
}
