// Moves under load, short: the scenarios of `npm run prove`, counts only.

import { faultsOf, NO_FAULTS, verifies } from "@moor/testkit";
import { expect } from "vitest";
import { runMoves, type MovesCase } from "../prove/moves-scenario.ts";
import { SHORT_PACE } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

const DEADLINE_MS = 120_000;

async function expectUnhurt(which: MovesCase): Promise<{ corrections: number }> {
  const { still, moved, moves, corrections, strayCorrections } = await runMoves(which, SHORT_PACE);
  expect([...still.failures, ...moved.failures]).toEqual([]);
  expect([faultsOf(still), faultsOf(moved)]).toEqual([NO_FAULTS, NO_FAULTS]);
  expect(moves).toMatchObject({ made: SHORT_PACE.tunnels * SHORT_PACE.moveTimes, refused: [] });
  expect(moved.calls).toBeGreaterThan(100);
  expect(strayCorrections).toBe(0);
  return { corrections };
}

verifies(
  ["R4", "R24"],
  "embedded directory, bootstrap entries, both kinds of agent on each tunnel: moves hurt no call",
  async () => {
    const { corrections } = await expectUnhurt({ directory: "sqlite", entryMode: "bootstrap", mix: "mixed" });
    expect(corrections).toBeGreaterThan(0);
  },
  DEADLINE_MS,
);

describePostgres("moves under load on PostgreSQL", (server) => {
  verifies(
    ["R22", "R24"],
    "entries with replicas: moves hurt no call, and nobody is corrected",
    async () => {
      const which = { directory: "postgres", entryMode: "replica", mix: "mixed", server: server() } as const;
      expect(await expectUnhurt(which)).toEqual({ corrections: 0 });
    },
    DEADLINE_MS,
  );

  verifies(
    ["R4", "R24"],
    "bootstrap entries: moves hurt no call, of agents without the capability neither",
    async () => {
      for (const mix of ["capable", "plain"] as const) {
        await expectUnhurt({ directory: "postgres", entryMode: "bootstrap", mix, server: server() });
      }
    },
    DEADLINE_MS,
  );
});
