// What a node with a directory knows of box keys, against what an entry of another node has seen.

import { createSilentLogger } from "@moor/runtime";
import { VirtualRuntime, verifies } from "@moor/testkit";
import { expect } from "vitest";
import type { Directory } from "../src/directory/directory.ts";
import { directoryKnowledge } from "../src/directory-knowledge.ts";
import { FakeReplica } from "./support/fake-replica.ts";

verifies(
  "L23",
  "a box key counts as replaced where the replica shows another, and the entry has seen no more than it",
  () => {
    const runtime = new VirtualRuntime(1);
    const replica = new FakeReplica(runtime);
    const options = { runtime, logger: createSilentLogger() };
    const { knowledge } = directoryKnowledge({} as Directory, replica, options);
    const { id } = replica.addHome();
    replica.updateHome(id, { boxKey: "present" });
    replica.seq = 10;
    const isReplaced = (key: string, seenSeq: number) => knowledge.isBoxKeyReplaced(id, key, seenSeq);
    expect([isReplaced("present", 5), isReplaced("present", 10)]).toEqual([false, false]);
    expect([isReplaced("former", 9), isReplaced("former", 10), isReplaced("newer", 11)]).toEqual([
      true,
      true,
      false,
    ]);
    replica.updateHome(id, { boxKey: null });
    expect(isReplaced("former", 9)).toBe(true);
  },
);
