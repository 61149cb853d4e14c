// Every vector, replayed by the machines of @moor/protocol, and the vectors themselves judged by their schemas.

import { Ajv } from "ajv";
import * as protocol from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { describe, expect, test } from "vitest";
import type { ReplayResult } from "./replay-each.ts";
import { replayVectors } from "./replay-vectors.ts";
import { readJson, readVectors, VECTOR_NAMES } from "./vector-files.ts";

const results = replayVectors(protocol);

/** The failures of one list; the list must not be empty, so that a renamed file cannot pass unseen. */
function failuresOf(list: string): readonly ReplayResult[] {
  const replayed = results.filter((result) => result.id.startsWith(`${list}/`));
  expect(replayed.length).toBeGreaterThan(0);
  return replayed.filter((result) => result.failure !== undefined);
}

describe("the machines agree with the vectors", () => {
  verifies(["R1", "R2", "R3"], "capabilities.json", () => expect(failuresOf("capabilities")).toEqual([]));
  verifies(["R6", "R7"], "corrections.json", () => expect(failuresOf("corrections")).toEqual([]));
  verifies(["R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16"], "sequences.json", () =>
    expect(failuresOf("sequences")).toEqual([]),
  );
  verifies("R17", "backoff.json and retry-after.json", () =>
    expect([...failuresOf("backoff"), ...failuresOf("retry-after")]).toEqual([]),
  );
  verifies("T18", "timeouts.json", () => expect(failuresOf("timeouts")).toEqual([]));
  verifies("T16", "server-info.json", () => expect(failuresOf("server-info")).toEqual([]));
  verifies("T20", "tunnel-failure.json", () => expect(failuresOf("tunnel-failure")).toEqual([]));
  verifies("R20", "command-tokens.json", () => expect(failuresOf("command-tokens")).toEqual([]));
  verifies(["L4", "L8"], "link-hosts.json", () => expect(failuresOf("link-hosts")).toEqual([]));
  verifies(["L5", "L8", "L28"], "link-spreads.json", () => expect(failuresOf("link-spreads")).toEqual([]));
  verifies("L7", "link-tokens.json", () => expect(failuresOf("link-tokens")).toEqual([]));
  verifies(["L12", "L13"], "link-records.json", () => expect(failuresOf("link-records")).toEqual([]));
  verifies(["L27", "L28", "L30", "L31", "L32"], "link-frames.json", () =>
    expect(failuresOf("link-frames")).toEqual([]),
  );
  verifies(["L28", "L29"], "link-signatures.json", () => expect(failuresOf("link-signatures")).toEqual([]));
  verifies(
    ["L6", "L8", "L10", "L11", "L12", "L13", "L14", "L15", "L16", "L17", "L18", "L23"],
    "link-sequences.json",
    () => expect(failuresOf("link-sequences")).toEqual([]),
  );
});

describe("the vectors are sound", () => {
  test.each(VECTOR_NAMES)("%s.json has the shape of its schema", (name) => {
    const validate = new Ajv({ strict: true, strictTuples: false, allowUnionTypes: true }).compile(
      readJson(`${name}.schema.json`) as object,
    );
    validate(readVectors(name));
    expect(validate.errors ?? []).toEqual([]);
  });

  test("every case has an id of its own in its list", () => {
    const ids = results.map((result) => result.id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test("polls of a sequence are started once, end once, and run side by side only where it says so", () => {
    for (const { id, overlapping, steps } of readVectors("sequences").sequences) {
      const open = new Set<number>();
      const started = new Set<number>();
      let mostOpen = 0;
      for (const step of steps) {
        if (step.do === "start") {
          expect(started, id).not.toContain(step.poll);
          started.add(step.poll);
          open.add(step.poll);
        } else expect(open.delete(step.poll), `${id}: poll ${step.poll} is under way`).toBe(true);
        mostOpen = Math.max(mostOpen, open.size);
      }
      expect(mostOpen > 1, id).toBe(overlapping);
    }
  });

  test("a link sequence starts with a start, and no dial lasts as long as a client's own 15 s", () => {
    for (const { id, steps } of readVectors("link-sequences").sequences) {
      expect(steps[0]?.do, id).toBe("start");
      let dialMs = 0;
      let isDialing = false;
      for (const [index, step] of steps.entries()) {
        dialMs += step.afterMs ?? 0;
        if (isDialing) expect(dialMs, `${id}: step ${index + 1}`).toBeLessThan(15_000);
        if (step.expect.dials.length > 0) dialMs = 0;
        isDialing = step.expect.state === "connecting";
      }
    }
  });

  test("there are enough of them", () => {
    expect(readVectors("capabilities").cases.length).toBeGreaterThanOrEqual(45);
    expect(readVectors("corrections").cases.length).toBeGreaterThanOrEqual(60);
    const { sequences } = readVectors("sequences");
    expect(sequences.length).toBeGreaterThanOrEqual(14);
    expect(sequences.flatMap((sequence) => sequence.steps).length).toBeGreaterThanOrEqual(100);
    expect(sequences.filter((sequence) => sequence.overlapping).length).toBeGreaterThanOrEqual(3);
    expect(readVectors("link-hosts").cases.length).toBeGreaterThanOrEqual(29);
    expect(readVectors("link-spreads").cases.length).toBeGreaterThanOrEqual(12);
    expect(readVectors("link-sequences").sequences.length).toBeGreaterThanOrEqual(25);
  });
});
