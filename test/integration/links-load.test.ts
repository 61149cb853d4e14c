// Homes under load, short: the scenarios of `npm run prove`, counts only.

import { verifies } from "@moor/testkit";
import { commandFaultsOf, NO_COMMAND_FAULTS } from "@moor/testkit/link-command-verdict";
import { expect } from "vitest";
import { runLinksMixed } from "../prove/links-mixed-scenario.ts";
import { runLinksMove } from "../prove/links-move-scenario.ts";
import { SHORT_PACE } from "./cluster-kit.ts";
import { describePostgres } from "./postgres-kit.ts";

const DEADLINE_MS = 180_000;
const PACE = { ...SHORT_PACE.links, movedHomes: 2, moveTimes: 2, commandsMs: 4_000 };

verifies(
  ["L6", "L21"],
  "clients without shard never see 4421, and nobody is stranded over moves and a restart of their node",
  async () => {
    const run = await runLinksMixed("two-shards", PACE);
    expect(commandFaultsOf(run.verdict)).toEqual(NO_COMMAND_FAULTS);
    expect(run).toMatchObject({ strayRedirects: 0, stranded: 0, lastResults: run.lastCommands });
    expect(run.redirects).toBeGreaterThan(0);
  },
  DEADLINE_MS,
);

describePostgres("links on two nodes", (server) => {
  verifies(
    ["L20", "L21", "L23"],
    "homes move between nodes under commands while a box is killed: no command is acted on twice, every outcome is true",
    async () => {
      const run = await runLinksMove("two-nodes", PACE, server());
      expect(commandFaultsOf(run.verdict)).toEqual(NO_COMMAND_FAULTS);
      expect(run.moves.made).toBe(PACE.movedHomes * PACE.moveTimes);
      expect(run).toMatchObject({ unexplained: 0, boxesOnline: run.boxes });
      expect(run.verdict.results).toBeGreaterThan(100);
    },
    DEADLINE_MS,
  );
});
