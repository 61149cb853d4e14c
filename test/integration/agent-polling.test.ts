import type { PollFailure } from "@moor/client";
import { createLogger, createSilentLogger } from "@moor/runtime";
import {
  startHttpHost,
  startScriptedService,
  verifies,
  type ScriptedAnswer,
  type ScriptedRequest,
} from "@moor/testkit";
import { expect, onTestFinished } from "vitest";
import {
  command,
  commands,
  KEY,
  playPolls,
  startAgent,
  startServiceWith,
  toolCall,
  TUNNEL,
} from "./agent-kit.ts";

/** Runs an agent until its polls have failed `count` times. */
async function failuresOf(
  endpoint: string,
  count: number,
  isInsecureAllowed = false,
): Promise<PollFailure[]> {
  const failures: PollFailure[] = [];
  await new Promise<void>((resolve) => {
    startAgent(
      { endpoint, isInsecureAllowed },
      {
        onPollFailed: (failure) => {
          failures.push(failure);
          if (failures.length === count) resolve();
        },
      },
    );
  });
  return failures.slice(0, count);
}

function correction(token: string, revision: number): ScriptedAnswer {
  return {
    kind: "answer",
    status: 409,
    headers: [
      ["Content-Type", "application/json"],
      ["X-Tunnel-Shard-Token", token],
    ],
    body: `{"error":{"code":"wrong_cluster","policy_revision":${revision}}}`,
  };
}

verifies(
  ["R1", "T16"],
  "polls, responses and notifications all carry the agent's identity, one line each",
  async () => {
    const note = '{"jsonrpc":"2.0","method":"notifications/progress"}';
    const target = await startServiceWith();
    await target.close();
    const service = await startServiceWith(
      commands(command({ id: "a", jsonrpc: toolCall("1") }), command({ id: "b", jsonrpc: note })),
    );
    startAgent({
      endpoint: `${service.origin}/prefix`,
      channels: [{ mcpUrl: target.origin }, { name: "files", mcpUrl: target.origin }],
      extraHeaders: [["X-Route", "blue"]],
    });
    await service.untilSeen(
      "two polls and two responses",
      () => service.polls.length > 1 && service.responses.length > 1,
    );
    for (const request of service.requests) {
      const once = (name: string) => {
        expect(request.values(name), name).toHaveLength(1);
        return request.values(name)[0] ?? "";
      };
      expect(once("Authorization")).toBe(`Bearer ${KEY}`);
      expect(once("Accept")).toBe("application/json");
      expect(once("X-Tunnel-Client-Capabilities")).toBe("wrong-cluster-v1");
      expect(once("X-Tunnel-Client-Wire-Protocol-Version")).toBe("2026-08-25");
      expect(once("X-Tunnel-Client-Name")).not.toBe("");
      expect(once("X-Tunnel-Client-Version")).not.toBe("");
      expect(once("User-Agent")).not.toBe("");
      expect(once("X-Tunnel-Client-Instance-Id")).toMatch(/^[0-9a-f]{32}$/);
      expect(once("X-Tunnel-MCP-Server-Info")).toBe(
        '{"version":1,"channels":[{"name":"main"},{"name":"files"}]}',
      );
      expect(once("X-Route")).toBe("blue");
      expect(request.path).toMatch(new RegExp(`^/prefix/v1/tunnels/${TUNNEL}/(poll|response)$`));
    }
    expect(service.polls[0]?.query.getAll("channel")).toEqual(["main", "files"]);
    expect(
      new Set(service.requests.map((request) => request.values("X-Tunnel-Client-Instance-Id")[0])).size,
    ).toBe(1);
  },
);

verifies(
  "T17",
  "the first poll asks for an answer at once, later ones the configured wait, for the free slots",
  async () => {
    const empty: ScriptedAnswer = { kind: "answer", status: 204 };
    const service = await startServiceWith(empty);
    startAgent({ endpoint: service.origin, concurrency: 7, pollWaitMs: 20_000 });
    await service.untilSeen("two polls", () => service.polls.length === 2);
    expect(service.polls.map(({ query }) => [query.get("limit"), query.get("timeout_ms")])).toEqual([
      ["7", "1"],
      ["7", "20000"],
    ]);
    expect(service.connectionCount).toBe(1);
  },
);

verifies(
  ["R20", "R10"],
  "a response echoes its command's token, bytes and all, whatever polling has learnt since",
  async () => {
    const token = "tok, with é and space";
    const service = await startServiceWith(
      correction("polling-token", 3),
      commands(command({ id: "a", token, jsonrpc: toolCall("1") })),
    );
    startAgent({ endpoint: service.origin });
    await service.untilSeen("a response", () => service.responses.length > 0);
    const [echoed = ""] = service.responses[0]?.values("X-Tunnel-Shard-Token") ?? [];
    expect(Buffer.from(echoed, "latin1").toString("utf8")).toBe(token);
    expect(service.polls.map((poll) => poll.values("X-Tunnel-Shard-Token"))).toEqual([
      [],
      ["polling-token"],
      ["polling-token"],
    ]);
  },
);

verifies("R21", "wrong_cluster on a response changes no polling state and adds no retry", async () => {
  const play = playPolls([commands(command({ id: "a", jsonrpc: toolCall("1") }))]);
  const service = await startScriptedService(({ path }) =>
    path.endsWith("/poll") ? play(path) : correction("evil", 9),
  );
  onTestFinished(() => service.close());
  const agent = startAgent({ endpoint: service.origin });
  await service.untilSeen("a response", () => service.responses.length > 0);
  await expect.poll(() => agent.status().inProgress, { timeout: 20_000 }).toBe(0);
  expect(service.responses).toHaveLength(1);
  expect(service.polls.flatMap((poll) => poll.values("X-Tunnel-Shard-Token"))).toEqual([]);
});

verifies("R18", "no redirect of the service is followed, by polls or by responses", async () => {
  const elsewhere = await startServiceWith();
  for (const status of [301, 302, 303, 307, 308]) {
    const redirect: ScriptedAnswer = {
      kind: "answer",
      status,
      headers: [["Location", `${elsewhere.origin}/v1/tunnels/${TUNNEL}/poll`]],
    };
    const play = playPolls([redirect, commands(command({ id: "a", jsonrpc: toolCall("1") }))]);
    const service = await startScriptedService(({ path }) =>
      path.endsWith("/poll") ? play(path) : redirect,
    );
    onTestFinished(() => service.close());
    const agent = startAgent({ endpoint: service.origin });
    await service.untilSeen("a response", () => service.responses.length > 0);
    await expect.poll(() => agent.status().inProgress, { timeout: 20_000 }).toBe(0);
    expect(service.responses).toHaveLength(1);
    expect(service.requests.every(({ path }) => /\/(poll|response)$/.test(path))).toBe(true);
  }
  expect(elsewhere.connectionCount).toBe(0);
});

verifies(
  "R6",
  "a head of 64 KiB is read: an oversize token is a malformed correction, not a broken transport",
  async () => {
    const service = await startServiceWith(correction("t".repeat(60_000), 1));
    expect(await failuresOf(service.origin, 1)).toEqual([
      { kind: "malformed-correction", status: 409, fault: undefined },
    ]);
    const beyond = await startServiceWith(correction("t".repeat(70_000), 1));
    expect(await failuresOf(beyond.origin, 1)).toMatchObject([
      { kind: "destination-failure", fault: "protocol" },
    ]);
  },
);

verifies("R6", "a correction's body over 64 KiB is left unread at its first byte too many", async () => {
  const body = `{"error":{"code":"wrong_cluster","policy_revision":1}}${" ".repeat(65_536)}`;
  const head = `HTTP/1.1 409 X\r\nX-Tunnel-Shard-Token: t\r\nContent-Length: 99999999\r\n\r\n`;
  const service = await startServiceWith({ kind: "hang", bytes: `${head}${body}` });
  const [failure] = await failuresOf(service.origin, 1);
  expect(failure).toMatchObject({ kind: "malformed-correction", status: 409 });
});

verifies(["R6", "R14"], "a correction that came compressed is judged after decoding", async () => {
  const { gzipSync } = await import("node:zlib");
  const text = '{"error":{"code":"wrong_cluster","policy_revision":1}}';
  const zipped = (body: string): ScriptedAnswer => ({
    kind: "answer",
    status: 409,
    headers: [
      ["X-Tunnel-Shard-Token", "tok"],
      ["Content-Encoding", "gzip"],
    ],
    body: gzipSync(body),
  });
  const good = await startServiceWith(zipped(text));
  expect(await failuresOf(good.origin, 1)).toMatchObject([{ kind: "correction" }]);
  const bomb = await startServiceWith(zipped(text + " ".repeat(1_000_000)));
  expect(await failuresOf(bomb.origin, 1)).toMatchObject([{ kind: "malformed-correction" }]);
});

verifies(
  ["R8", "R14"],
  "refused, unresolvable, reset, untrusted and garbled endpoints are told apart by category",
  async () => {
    const gone = await startServiceWith();
    await gone.close();
    expect(await failuresOf(gone.origin, 1)).toMatchObject([
      { kind: "destination-failure", fault: "refused" },
    ]);
    const garbled = await startServiceWith({ kind: "raw", bytes: "no http\r\n\r\n" }, { kind: "reset" });
    expect(await failuresOf(garbled.origin, 2)).toMatchObject([{ fault: "protocol" }, { fault: "reset" }]);
    const plain = await startHttpHost((_request, response) => response.end());
    onTestFinished(() => plain.close());
    expect(await failuresOf(plain.origin.replace("http:", "https:"), 1)).toMatchObject([{ fault: "tls" }]);
    expect(await failuresOf("http://no-such-host.invalid", 1, true)).toMatchObject([{ fault: "dns" }]);
  },
);

verifies(
  ["R8", "T25"],
  "no log line holds the key, a token, a body, or the endpoint's path, query or host",
  async () => {
    const lines: string[] = [];
    const logger = createLogger({ level: "debug", destination: { write: (line) => void lines.push(line) } });
    const marked = "marker-7f3a";
    const bad: ScriptedAnswer = {
      kind: "raw",
      bytes: `HTTP/1.1 409 reason-${marked}\r\nX-Tunnel-Shard-Token: ${marked},\r\nContent-Length: 11\r\n\r\n${marked}`,
      keepOpen: true,
    };
    const error: ScriptedAnswer = { kind: "answer", status: 401, body: `{"error":{"message":"${marked}"}}` };
    const bare = commands(
      command({ id: "a", token: `${marked}-token`, jsonrpc: toolCall("1", `{"x":"${marked}"}`) }),
      command({ id: "b", token: `${marked}\u0001`, jsonrpc: toolCall("2") }),
    );
    const play = playPolls([bad, error, correction(`${marked}-polling`, 1), bare]);
    const service = await startScriptedService(({ path }: ScriptedRequest) =>
      path.endsWith("/poll") ? play(path) : { kind: "answer", status: 400, body: marked },
    );
    onTestFinished(() => service.close());
    const agent = startAgent({ endpoint: `${service.origin}/${marked}` }, { logger });
    await service.untilSeen("a response", () => service.responses.length > 0);
    await expect.poll(() => agent.status().inProgress, { timeout: 20_000 }).toBe(0);
    const events = lines.map((line) => (JSON.parse(line) as { event: string }).event);
    expect(events).toEqual(
      expect.arrayContaining(["poll-failed", "command-dropped", "response-failed", "command-ended"]),
    );
    const text = lines.join("");
    expect(text).not.toContain(marked);
    expect(text).not.toContain(KEY);
    expect(text).not.toContain("127.0.0.1");
  },
);

verifies(
  "T19",
  "a lost acknowledgement is repeated with the same bytes, and the 404 that follows ends it quietly",
  async () => {
    const play = playPolls([commands(command({ id: "a", jsonrpc: toolCall("1") }))]);
    const endings: ScriptedAnswer[] = [{ kind: "reset" }, { kind: "answer", status: 404 }];
    const service = await startScriptedService(({ path }) =>
      path.endsWith("/poll") ? play(path) : (endings.shift() ?? { kind: "reset" }),
    );
    onTestFinished(() => service.close());
    const agent = startAgent({ endpoint: service.origin }, { logger: createSilentLogger() });
    await service.untilSeen("two attempts", () => service.responses.length === 2);
    await expect.poll(() => agent.status().inProgress, { timeout: 20_000 }).toBe(0);
    expect(service.responses).toHaveLength(2);
    expect(service.responses[0]?.body.equals(service.responses[1]?.body ?? Buffer.alloc(0))).toBe(true);
  },
);
