import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createLogger, Secret } from "@moor/runtime";

test("a Secret shows itself to nothing but reveal", () => {
  const secret = new Secret("marker-1234");
  const seen = [String(secret), JSON.stringify({ secret }), inspect(secret), inspect({ deep: { secret } })];
  expect(seen.join(" ")).not.toContain("marker");
  expect(secret.reveal()).toBe("marker-1234");
});

test("a Secret in a log field is not written", () => {
  const lines: string[] = [];
  const logger = createLogger({ level: "debug", destination: { write: (line) => void lines.push(line) } });
  logger.child({ key: new Secret("marker-a") }).info("happened", { token: new Secret("marker-b"), count: 2 });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    event: "happened",
    level: "info",
    key: "[secret]",
    token: "[secret]",
    count: 2,
  });
});
