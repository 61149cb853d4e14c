// One process of a link fleet, as its controller sees it: orders in, answers out.
//
// I1  Orders are answered in any order, by number; a process that ends fails what it has not answered.

import { fileURLToPath } from "node:url";
import type { FleetAnswer, FleetOrder } from "./link-fleet-orders.ts";
import { startProcess, type RunningProcess } from "./processes.ts";

/** A process under way. */
export interface LinkFleetProcess {
  readonly process: RunningProcess;
  /** Gives an order and resolves with its answer, which must be of `kind`. Rejects after `deadlineMs`. */
  ask<Kind extends FleetAnswer["kind"]>(
    what: FleetOrder,
    kind: Kind,
    deadlineMs?: number,
  ): Promise<Extract<FleetAnswer, { readonly kind: Kind }>>;
}

/** Longest wait for an answer. Milliseconds: journals are long and processes busy. */
const ANSWER_MS_DEFAULT = 60_000;

const PROGRAM = fileURLToPath(new URL("link-fleet-member.ts", import.meta.url));

/** Starts one. It ends with the process that started it. */
export async function startLinkFleetProcess(): Promise<LinkFleetProcess> {
  const running = await startProcess({ args: [PROGRAM], hasInput: true, label: "link fleet" });
  let orderCount = 0;
  return {
    process: running,
    ask: async (what, kind, deadlineMs = ANSWER_MS_DEFAULT) => {
      orderCount += 1;
      const start = `{"order":${orderCount},`;
      running.stdin.write(`${JSON.stringify({ order: orderCount, what })}\n`);
      const line = await running.stdout
        .waitFor((each) => each.startsWith(start), deadlineMs)
        .catch((error: unknown) => {
          const text = `the link fleet did not answer ${what.do}; stderr:\n${running.stderr.text()}`;
          throw new Error(text, { cause: error });
        });
      const { answer } = JSON.parse(line) as { readonly answer: FleetAnswer };
      if (answer.kind === kind) return answer as Extract<FleetAnswer, { readonly kind: typeof kind }>;
      throw new Error(`the link fleet answered ${answer.kind === "failed" ? answer.why : answer.kind}`);
    },
  };
}
