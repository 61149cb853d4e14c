// One list of vectors against one check.

import type { VectorCase } from "./vector-files.ts";

/** One case, and what went wrong with it if anything did. */
export interface ReplayResult {
  /** `file/id`, for files of several lists `file/list/id`. */
  readonly id: string;
  readonly spec: readonly string[];
  readonly failure: string | undefined;
}

/** Checks every vector of a list. A check throws on the first difference, which is a failure of its case alone. */
export function replayEach<Vector extends VectorCase>(
  list: string,
  vectors: readonly Vector[],
  check: (vector: Vector) => void,
): readonly ReplayResult[] {
  return vectors.map((vector) => {
    const named = { id: `${list}/${vector.id}`, spec: vector.spec };
    try {
      check(vector);
      return { ...named, failure: undefined };
    } catch (thrown) {
      return { ...named, failure: thrown instanceof Error ? thrown.message : String(thrown) };
    }
  });
}
