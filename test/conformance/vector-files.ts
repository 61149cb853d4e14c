// The vector files as typed data, and the byte recipes in them. The shapes are those of vectors/*.schema.json.

import { readFileSync } from "node:fs";
import type { LinkVectorFiles } from "./link-vector-files.ts";
import type { PollFault, ServerInfoChannel, TunnelFailure } from "@moor/protocol";

/** A text (its UTF-8 bytes) or parts one after another. */
export type BytesRecipe =
  | string
  | readonly (string | { readonly hex: string } | { readonly repeat: string; readonly count: number })[];

/** What every case has. */
export interface VectorCase {
  readonly id: string;
  readonly spec: readonly string[];
  readonly why: string;
}

type HeaderLine = readonly [name: string, value: BytesRecipe];

/** A poll answer as a vector gives it. */
export interface AnswerRecipe {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly body: BytesRecipe;
  readonly bodyIsCut?: true;
}

/** What a poll's ending means to a vector: malformed corrections are ordinary errors there. */
export type VectorOutcome = "success" | "correction" | "ordinary-error" | "destination-failure" | "cancelled";

/** What holds after a step of a sequence. */
export interface StepExpectation {
  readonly outcome: VectorOutcome;
  readonly state: {
    readonly activeToken: string | null;
    readonly watermark: { readonly revision: number; readonly token: string } | null;
    readonly corrections: number;
    readonly destinationFailures: number;
    readonly generation: number;
  };
  readonly delayMs: number | null;
  readonly ready?: boolean;
  readonly commands?: number;
}

/** One fact of a sequence. */
export type SequenceStep =
  | { readonly do: "start"; readonly poll: number; readonly sends: string | null }
  | ({ readonly do: "answer"; readonly poll: number; readonly expect: StepExpectation } & AnswerRecipe & {
        readonly random?: number;
        readonly wallMs?: number;
      })
  | {
      readonly do: "fault";
      readonly poll: number;
      readonly fault: PollFault;
      readonly random: number;
      readonly expect: StepExpectation;
    }
  | ({
      readonly do: "cancel";
      readonly poll: number;
      readonly random?: number;
      readonly expect: StepExpectation;
    } & Partial<AnswerRecipe>);

/** One sequence: the life of one client instance. */
export interface Sequence extends VectorCase {
  readonly overlapping: boolean;
  readonly steps: readonly SequenceStep[];
}

interface Cases<Fields> {
  readonly cases: readonly (VectorCase & Fields)[];
}

/** All vector files by name. */
export interface VectorFiles extends LinkVectorFiles {
  readonly capabilities: Cases<{ lines: readonly BytesRecipe[]; expect: readonly string[] }>;
  readonly corrections: Cases<
    AnswerRecipe & { expect: { outcome: VectorOutcome; token?: BytesRecipe; revision?: number } }
  >;
  readonly sequences: { readonly sequences: readonly Sequence[] };
  readonly timeouts: Cases<{ value: unknown; expectMs: number | null }>;
  readonly "retry-after": Cases<{ value: string; date?: string; wallMs: number; expectMs: number | null }>;
  readonly backoff: Cases<{
    run: readonly (
      | { event: "succeeded" }
      | { event: "failed"; random: number; retryAfterMs?: number; expectMs: number }
    )[];
  }>;
  readonly "server-info": {
    readonly parse: readonly (VectorCase & {
      lines: readonly BytesRecipe[];
      expect: readonly ServerInfoChannel[] | null;
    })[];
    readonly encode: readonly (VectorCase & {
      channels: readonly ServerInfoChannel[];
      expect: string | null;
    })[];
  };
  readonly "tunnel-failure": {
    readonly parse: readonly (VectorCase & { value: unknown; expect: TunnelFailure | null })[];
    readonly encode: readonly (VectorCase & {
      rawId: string;
      status: number;
      failure: TunnelFailure;
      expect: string | null;
    })[];
  };
  readonly "command-tokens": Cases<{ token: BytesRecipe; expect: boolean }>;
}

/** Names of the vector files, without `.json`. */
export const VECTOR_NAMES = [
  "capabilities",
  "corrections",
  "sequences",
  "timeouts",
  "retry-after",
  "backoff",
  "server-info",
  "tunnel-failure",
  "command-tokens",
  "link-hosts",
  "link-spreads",
  "link-tokens",
  "link-records",
  "link-frames",
  "link-signatures",
  "link-sequences",
] as const satisfies readonly (keyof VectorFiles)[];

const READ = new Map<string, unknown>();

/** Reads one vector file, once. */
export function readVectors<Name extends keyof VectorFiles>(name: Name): VectorFiles[Name] {
  if (!READ.has(name)) READ.set(name, readJson(`${name}.json`));
  return READ.get(name) as VectorFiles[Name];
}

/** Reads a JSON file of the vectors folder. */
export function readJson(file: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../vectors/${file}`, import.meta.url), "utf8")) as unknown;
}

/** The bytes a recipe stands for. */
export function bytesOf(recipe: BytesRecipe): Uint8Array {
  const parts = typeof recipe === "string" ? [recipe] : recipe;
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === "string") return Buffer.from(part, "utf8");
      if ("hex" in part) return Buffer.from(part.hex, "hex");
      return Buffer.from(part.repeat.repeat(part.count), "utf8");
    }),
  );
}

/** The same as a header value: one character per byte. */
export function headerValueOf(recipe: BytesRecipe): string {
  return Buffer.from(bytesOf(recipe)).toString("latin1");
}
