import { expect, test } from "vitest";
import { ProtocolError } from "@moor/protocol";
import { createSilentLogger } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import { NodeRegistrar } from "../src/liveness/node-registrar.ts";

const registration = { id: "a", incarnation: "0", shards: [] };

function registrar(answers: (ProtocolError | "ok")[]) {
  const runtime = new VirtualRuntime();
  const seen = { asked: 0, registered: 0 };
  const made = new NodeRegistrar({
    directory: {
      registerNode: async () => {
        seen.asked += 1;
        const answer = answers.shift() ?? "ok";
        if (answer !== "ok") throw answer;
        return { startRevision: seen.asked };
      },
    },
    registration,
    onRegistered: () => (seen.registered += 1),
    runtime,
    logger: createSilentLogger(),
  });
  return { made, runtime, seen };
}

test("a node whose directory is away or regressed starts, and is registered once when it is back", async () => {
  const away = [new ProtocolError("directory_unavailable"), new ProtocolError("directory_regressed")];
  const { made, runtime, seen } = registrar(away);
  await made.start();
  expect(seen).toEqual({ asked: 1, registered: 0 });
  await runtime.advanceAsync(60_000);
  expect(seen).toEqual({ asked: 3, registered: 1 });
});

test("a refusal that waiting will not cure ends the start", async () => {
  const { made, seen } = registrar([new ProtocolError("conflict")]);
  await expect(made.start()).rejects.toThrow(ProtocolError);
  expect(seen.registered).toBe(0);
});

test("a conflict met later is asked again, since the other node may leave", async () => {
  const { made, runtime, seen } = registrar([
    new ProtocolError("directory_unavailable"),
    new ProtocolError("conflict"),
    new ProtocolError("conflict"),
  ]);
  await made.start();
  await runtime.advanceAsync(60_000);
  expect(seen).toEqual({ asked: 4, registered: 1 });
});

test("a node that stops asks no more", async () => {
  const { made, runtime, seen } = registrar([new ProtocolError("directory_unavailable")]);
  await made.start();
  made.stop();
  await runtime.advanceAsync(60_000);
  expect(seen).toEqual({ asked: 1, registered: 0 });
});
