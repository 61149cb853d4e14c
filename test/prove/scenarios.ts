// Every scenario of `npm run prove`, in the order they run.

import { linksFloodScenario, linksHandshakesScenario } from "./links-front-door-scenarios.ts";
import { linksMemoryScenario } from "./links-memory-scenario.ts";
import { linksMixedScenario } from "./links-mixed-scenario.ts";
import { linksMoveScenario } from "./links-move-scenario.ts";
import { linksDuplicateScenario } from "./links-duplicate-scenario.ts";
import { linksRestartScenario } from "./links-restart-scenario.ts";
import { moveRateScenario } from "./move-rate-scenario.ts";
import { movesScenario } from "./moves-scenario.ts";
import { outageScenario } from "./outage-scenario.ts";
import { rotationScenario } from "./key-rotation-scenario.ts";
import { scaleScenario } from "./scale-scenario.ts";
import type { Scenario } from "./scenario.ts";

export const SCENARIOS: readonly Scenario[] = [
  movesScenario({ directory: "sqlite", entryMode: "replica", mix: "capable" }),
  movesScenario({ directory: "sqlite", entryMode: "bootstrap", mix: "capable" }),
  movesScenario({ directory: "sqlite", entryMode: "bootstrap", mix: "plain" }),
  movesScenario({ directory: "postgres", entryMode: "replica", mix: "capable" }),
  movesScenario({ directory: "postgres", entryMode: "replica", mix: "mixed" }),
  movesScenario({ directory: "postgres", entryMode: "bootstrap", mix: "capable" }),
  movesScenario({ directory: "postgres", entryMode: "bootstrap", mix: "plain" }),
  movesScenario({ directory: "postgres", entryMode: "bootstrap", mix: "mixed" }),
  outageScenario,
  rotationScenario("sqlite"),
  rotationScenario("postgres"),
  scaleScenario("sqlite"),
  scaleScenario("postgres"),
  moveRateScenario("sqlite"),
  moveRateScenario("postgres"),
  linksRestartScenario,
  linksMemoryScenario,
  linksHandshakesScenario,
  linksFloodScenario,
  linksMoveScenario("two-shards"),
  linksMoveScenario("two-nodes"),
  linksMixedScenario("two-shards"),
  linksMixedScenario("two-nodes"),
  linksDuplicateScenario,
];
