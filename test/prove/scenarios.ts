// Every scenario of `npm run prove`, in the order they run.

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
];
