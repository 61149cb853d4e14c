// The vector files of the link plane as typed data. The shapes are those of vectors/link-*.schema.json.

import type { LinkSender } from "@moor/protocol";
import type { BytesRecipe, VectorCase } from "./vector-files.ts";

interface Cases<Fields> {
  readonly cases: readonly (VectorCase & Fields)[];
}

/** A frame as a vector gives it: its known members, `data` as a recipe of its JSON text. */
export interface FrameRecipe {
  readonly t: string;
  readonly data?: BytesRecipe;
  readonly [member: string]: unknown;
}

/** A key pair of the vectors: fixed, and known to everyone. */
export interface SignatureKey extends VectorCase {
  readonly seed: string;
  readonly key: string;
  readonly keyId: string;
}

/** A signature, the parts it is said to be of, and whether it holds. */
interface SignatureCase extends VectorCase {
  readonly host: string;
  readonly home: string;
  readonly clientNonce: string;
  readonly bytes: string;
  readonly key: string;
  readonly sig: string;
  readonly expect: boolean;
}

/** What holds after a step of a link sequence. */
export interface LinkExpectation {
  readonly dials: readonly string[];
  readonly waitMs: number | null;
  readonly state: "connecting" | "online" | "reconnecting" | "unlinked";
  readonly kept: string | null;
  readonly record?: Readonly<Record<string, unknown>>;
}

/** What happens in a step. The first group is what the service, or what is in its place, does at the host dialled. */
export type LinkFact =
  | { readonly do: "refuse" | "bad-certificate" | "end" }
  | { readonly do: "http"; readonly status: number }
  | { readonly do: "silence"; readonly until?: "upgrade" | "hello_ok" }
  | { readonly do: "close"; readonly code: number; readonly reason: string }
  | { readonly do: "verify"; readonly spreadMs?: number }
  | {
      readonly do: "bad-hello-ok";
      readonly fault: "signature" | "key" | "host" | "home" | "nonce" | "generation";
    }
  | { readonly do: "start"; readonly record?: string; readonly home?: string }
  | { readonly do: "wait"; readonly lateMs?: number }
  | { readonly do: "woke" | "network-changed" | "unlink" }
  | { readonly do: "rehome"; readonly home: string }
  | { readonly do: "disk"; readonly writes: "fail" | "work" };

/** One step of a link sequence. */
export type LinkStepRecipe = LinkFact & {
  readonly afterMs?: number;
  readonly random?: number;
  readonly expect: LinkExpectation;
};

/** The life of one client's link, over its processes. */
export interface LinkSequence extends VectorCase {
  readonly base: string;
  readonly home: string;
  readonly follows: boolean;
  readonly steps: readonly LinkStepRecipe[];
}

/** The vector files of the link plane by name. */
export interface LinkVectorFiles {
  readonly "link-hosts": Cases<{ base: string; host: string; expect: boolean }> & {
    readonly bases: readonly (VectorCase & { base: string; expect: boolean })[];
  };
  readonly "link-spreads": Cases<{ reason: string; expectMs: number }> & {
    readonly fields: readonly (VectorCase & { spreadMs: number; expectMs: number })[];
  };
  readonly "link-tokens": Cases<{ token: BytesRecipe; expect: { home: string; secret: string } | null }>;
  readonly "link-records": Cases<{ text: BytesRecipe; expect: { home: string; host: string | null } | null }>;
  readonly "link-frames": Cases<{
    from: LinkSender;
    text: BytesRecipe;
    expect: { kind: "frame"; frame: FrameRecipe } | { kind: "ignored" | "malformed" };
  }>;
  readonly "link-signatures": {
    readonly keys: readonly SignatureKey[];
    readonly proofs: readonly (SignatureCase & { readonly serviceNonce: string })[];
    readonly helloOks: readonly (SignatureCase & {
      readonly generation: string;
      readonly nextKey: string | null;
      readonly keyId: string;
    })[];
  };
  readonly "link-sequences": { readonly sequences: readonly LinkSequence[] };
}
