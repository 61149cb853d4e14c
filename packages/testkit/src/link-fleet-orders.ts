// What a link fleet's controller and the processes of its clients say to each other: JSON, one object a line.

import type { CrowdOrder } from "./link-crowd.ts";
import type { LinkEvent } from "./link-journal.ts";
import type { FloodDone, FloodOrder, HandshakesDone, HandshakesOrder } from "./link-load.ts";

/** An order to one process. `crowd`: the number it answered to `start`. */
export type FleetOrder =
  | { readonly do: "start"; readonly crowd: CrowdOrder }
  | { readonly do: "count" | "journal" | "stop"; readonly crowd: number }
  | { readonly do: "shake"; readonly handshakes: HandshakesOrder }
  | { readonly do: "flood"; readonly flood: FloodOrder };

/** Its answer. */
export type FleetAnswer =
  | { readonly kind: "started"; readonly crowd: number }
  | { readonly kind: "counted"; readonly online: number }
  | { readonly kind: "journal"; readonly events: readonly LinkEvent[] }
  | { readonly kind: "stopped" }
  | { readonly kind: "shaken"; readonly done: HandshakesDone }
  | { readonly kind: "flooded"; readonly done: FloodDone }
  | { readonly kind: "failed"; readonly why: string };
