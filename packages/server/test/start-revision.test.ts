// From where a process numbers what must be above all that earlier ones numbered.

import { expect } from "vitest";
import { verifies } from "@moor/testkit";
import { StartRevision } from "../src/liveness/start-revision.ts";

const WALL_MS = 1_800_000_000_000;
const runtime = { wallMs: () => WALL_MS };

verifies(
  "L23",
  "a start that is registered counts from the directory's revision, whatever the wall clock says",
  () => {
    const start = new StartRevision(5, runtime);
    start.register(1_700_000_000_000_000);
    expect(start.get()).toBe(1_700_000_000_000_000);
  },
);

verifies(
  "L23",
  "one that cannot register goes by its clock or its last start, and never falls when it can",
  () => {
    expect(new StartRevision(5, runtime).get()).toBe(WALL_MS * 1_000);
    expect(new StartRevision(WALL_MS * 1_000 + 7, runtime).get()).toBe(WALL_MS * 1_000 + 7);
    const late = new StartRevision(5, runtime);
    late.get();
    late.register(6);
    expect(late.get()).toBe(WALL_MS * 1_000);
    late.register(WALL_MS * 1_000 + 1);
    expect(late.get()).toBe(WALL_MS * 1_000 + 1);
  },
);
