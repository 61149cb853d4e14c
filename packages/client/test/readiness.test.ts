import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import { judgeReadiness, type ReadinessFacts } from "@moor/client";

const POLLS = ["none", "succeeded", "failed"] as const;
const AGES = [0, 49_999, 50_000, 100_000] as const;
const PROBES = ["unknown", "answered", "failed"] as const;

verifies(
  ["T24", "R17"],
  "ready exactly when the newest poll succeeded, is fresh, and every target answered",
  () => {
    let readyCount = 0;
    for (const newestPoll of POLLS) {
      for (const newestPollAgeMs of AGES) {
        for (const first of PROBES) {
          for (const second of PROBES) {
            const facts: ReadinessFacts = {
              newestPoll,
              newestPollAgeMs,
              pollWaitMs: 25_000,
              targets: [first, second],
            };
            const isReady =
              newestPoll === "succeeded" &&
              newestPollAgeMs < 50_000 &&
              first === "answered" &&
              second === "answered";
            expect(judgeReadiness(facts).isReady, JSON.stringify(facts)).toBe(isReady);
            if (isReady) readyCount += 1;
          }
        }
      }
    }
    expect(readyCount).toBe(2);
  },
);

verifies("T24", "the reason names the first thing that is missing", () => {
  const facts: ReadinessFacts = {
    newestPoll: "succeeded",
    newestPollAgeMs: 0,
    pollWaitMs: 25_000,
    targets: ["answered"],
  };
  const reason = (changed: Partial<ReadinessFacts>) => {
    const judged = judgeReadiness({ ...facts, ...changed });
    return judged.isReady ? undefined : judged.reason;
  };
  expect(reason({})).toBeUndefined();
  expect(reason({ newestPoll: "none" })).toBe("no-poll-yet");
  expect(reason({ newestPoll: "failed" })).toBe("poll-failed");
  expect(reason({ newestPollAgeMs: 50_000 })).toBe("poll-stale");
  expect(reason({ targets: ["unknown"] })).toBe("target-unknown");
  expect(reason({ targets: ["unknown", "failed"] })).toBe("target-failed");
});
