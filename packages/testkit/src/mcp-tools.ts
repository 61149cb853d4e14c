// The tools that every fake MCP server of the testkit offers, whichever SDK serves them.
//
// One description for both generations of the SDK, so that a test holds with either.

import { createNodeRuntime, sleep } from "@moor/runtime";
import { z } from "zod";

/** How a tool tells its caller that it is under way. */
export type ReportProgress = (progress: number, total: number, message: string) => Promise<void>;

const INPUTS = {
  echo: z.object({ text: z.string() }),
  add: z.object({ a: z.number(), b: z.number() }),
  slow: z.object({ steps: z.number().int().min(1).default(3), stepMs: z.number().min(0).default(50) }),
  big: z.object({ bytes: z.number().int().min(0) }),
} as const;

export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: z.ZodObject;
  /** The text the tool answers with. */
  readonly run: (input: unknown, report: ReportProgress) => Promise<string>;
}

const runtime = createNodeRuntime();

export const TOOLS: readonly ToolDescription[] = [
  {
    name: "echo",
    description: "Gives the text back",
    inputSchema: INPUTS.echo,
    run: async (input) => INPUTS.echo.parse(input).text,
  },
  {
    name: "add",
    description: "Adds two numbers",
    inputSchema: INPUTS.add,
    run: async (input) => {
      const { a, b } = INPUTS.add.parse(input);
      return String(a + b);
    },
  },
  {
    name: "slow",
    description: "Works step by step and reports progress at the end of each",
    inputSchema: INPUTS.slow,
    run: async (input, report) => {
      const { steps, stepMs } = INPUTS.slow.parse(input);
      for (let step = 1; step <= steps; step += 1) {
        await sleep(runtime, stepMs);
        await report(step, steps, `step ${step} of ${steps}`);
      }
      return `${steps} steps done`;
    },
  },
  {
    name: "big",
    description: "Answers with that many bytes of text",
    inputSchema: INPUTS.big,
    run: async (input) => "x".repeat(INPUTS.big.parse(input).bytes),
  },
];
