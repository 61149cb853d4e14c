// Breaks of the routing machine: R9, R11–R16.

import { inFile, type RuleBreak } from "./rule-break.ts";

const routing = inFile("poll-routing.ts");
const limits = inFile("limits.ts");

/** Breaks of the routing machine. */
export const POLL_ROUTING_BREAKS: readonly RuleBreak[] = [
  routing(
    "R9",
    "tokens are sent once only",
    "token: state.activeToken };",
    "token: state.corrections > 0 ? state.activeToken : undefined };",
  ),
  routing(
    "R11",
    "a success does not reset corrections",
    "{ ...state, corrections: 0, destinationFailures: 0, generation",
    "{ ...state, destinationFailures: 0, generation",
  ),
  routing(
    "R11",
    "a success does not reset failures",
    "{ ...state, corrections: 0, destinationFailures: 0, generation",
    "{ ...state, corrections: 0, generation",
  ),
  routing(
    "R11",
    "a success clears the token",
    "{ ...state, corrections: 0, destinationFailures: 0, generation",
    "{ ...state, activeToken: undefined, corrections: 0, destinationFailures: 0, generation",
  ),
  routing("R12", "equal counts as newer", "revision > watermark.revision", "revision >= watermark.revision"),
  routing("R12", "older counts as newer", "revision > watermark.revision", "revision !== watermark.revision"),
  routing(
    "R12",
    "older moves the token",
    "if (revision < watermark.revision) return { activeToken, watermark };",
    "if (revision < watermark.revision) return { activeToken: token, watermark };",
  ),
  routing(
    "R12",
    "revision 0 is not newer than none",
    "watermark === undefined || revision",
    "(watermark === undefined && revision > 0) || revision",
  ),
  routing(
    "R12",
    "a conflict keeps the token",
    "token === watermark.token ? token : undefined",
    "token === watermark.token ? token : activeToken",
  ),
  routing(
    "R12",
    "equal does not restore",
    "token === watermark.token ? token : undefined",
    "token === activeToken ? token : undefined",
  ),
  routing(
    "R12",
    "a conflict forgets the watermark",
    "token === watermark.token ? token : undefined, watermark }",
    "token === watermark.token ? token : undefined, watermark: token === watermark.token ? watermark : undefined }",
  ),
  routing(
    "R13",
    "no bound on corrections",
    "const isExhausted = corrections >= CORRECTIONS_MAX;",
    "const isExhausted = corrections > Infinity;",
  ),
  limits("R13", "two corrections", "CORRECTIONS_MAX = 3;\n\n/** Dest", "CORRECTIONS_MAX = 2;\n\n/** Dest"),
  limits("R13", "four corrections", "CORRECTIONS_MAX = 3;\n\n/** Dest", "CORRECTIONS_MAX = 4;\n\n/** Dest"),
  routing(
    "R13",
    "the third correction keeps the token",
    "activeToken: isExhausted ? undefined : placed.activeToken",
    "activeToken: placed.activeToken",
  ),
  routing("R13", "the count stays at three", "corrections: isExhausted ? 0 : corrections", "corrections"),
  routing(
    "R13",
    "the third correction does not move the watermark",
    "const placed = { ...state, ...place(state, correction) };",
    "const placed = state.corrections === 2 ? state : { ...state, ...place(state, correction) };",
  ),
  routing(
    "R13",
    "only newer corrections count",
    "const corrections = state.corrections + 1;",
    "const corrections = state.corrections + (placed.watermark === state.watermark ? 0 : 1);",
  ),
  routing(
    "R13",
    "corrections do not count while tokenless",
    "const corrections = state.corrections + 1;",
    "const corrections = state.corrections + (state.watermark !== undefined && state.activeToken === undefined ? 0 : 1);",
  ),
  routing(
    "R14",
    "tokenless failures count",
    "if (ticket.token === undefined) return { ...state, generation };",
    "",
  ),
  routing(
    "R14",
    "no eviction",
    "return { ...state, activeToken: undefined, destinationFailures: 0, generation };",
    "return { ...state, destinationFailures: 0, generation };",
  ),
  routing(
    "R14",
    "eviction forgets the watermark",
    "return { ...state, activeToken: undefined, destinationFailures: 0, generation };",
    "return { ...state, activeToken: undefined, watermark: undefined, destinationFailures: 0, generation };",
  ),
  routing(
    "R14",
    "the count stays after eviction",
    "activeToken: undefined, destinationFailures: 0, generation };",
    "activeToken: undefined, destinationFailures, generation };",
  ),
  limits("R14", "two failures", "DESTINATION_FAILURES_MAX = 3", "DESTINATION_FAILURES_MAX = 2"),
  limits("R14", "four failures", "DESTINATION_FAILURES_MAX = 3", "DESTINATION_FAILURES_MAX = 4"),
  routing(
    "R14",
    "ordinary errors reset the count",
    "      break;\n  }\n  return state;",
    "      break;\n  }\n  return { ...state, destinationFailures: 0 };",
  ),
  routing(
    "R15",
    "a correction does not reset failures",
    "    destinationFailures: 0,\n    generation: state.generation + 1,",
    "    generation: state.generation + 1,",
  ),
  routing("R16", "late results are committed", "if (!isCurrent) return { state, isCurrent };", ""),
  routing(
    "R16",
    "late newer corrections are committed",
    "if (!isCurrent) return",
    'if (!isCurrent && outcome.kind !== "correction") return',
  ),
  routing(
    "R16",
    "a success does not advance",
    "destinationFailures: 0, generation: state.generation + 1 };",
    "destinationFailures: 0 };",
  ),
  routing(
    "R16",
    "a correction does not advance",
    "    destinationFailures: 0,\n    generation: state.generation + 1,",
    "    destinationFailures: 0,",
  ),
  routing(
    "R16",
    "a repeated correction does not advance",
    "    generation: state.generation + 1,\n  };",
    "    generation: state.generation + (placed.watermark === state.watermark ? 0 : 1),\n  };",
  ),
  routing(
    "R16",
    "a failure does not advance",
    "const generation = state.generation + 1;",
    "const generation = state.generation;",
  ),
  routing(
    "R16",
    "a tokenless failure does not advance",
    "if (ticket.token === undefined) return { ...state, generation };",
    "if (ticket.token === undefined) return state;",
  ),
  routing(
    "R16",
    "errors advance",
    "      break;\n  }\n  return state;",
    "      break;\n  }\n  return { ...state, generation: state.generation + 1 };",
  ),
];
