// One-shots: where they go, what a 421 may lead to, and what each answer means (L19, L33, L34).

import {
  lookNow,
  parseLinkEndpoint,
  RawJson,
  sendOnce,
  type OneShotAnswer,
  type OneShotRequest,
} from "@moor/client";
import { Secret } from "@moor/runtime";
import { verifies, VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";

const TOKEN = new Secret("villa.planted-marker");
const ONCE = { id: "c1", ttlMs: 1_000, data: new RawJson('{"a" : 1.0}') };

type Header = readonly [name: string, value: string];

function answer(status: number, headers: readonly Header[] = [], body = ""): OneShotAnswer {
  return { kind: "answer", status, headers, body };
}

function moved(...hosts: readonly string[]): OneShotAnswer {
  return answer(
    421,
    hosts.map((host) => ["ftw-shard", host] as const),
  );
}

/** Ports whose answers are these, in order, and the requests they got. */
function setUp(answers: readonly OneShotAnswer[], live?: string) {
  const requests: OneShotRequest[] = [];
  const ports = {
    runtime: new VirtualRuntime(),
    endpoint: parseLinkEndpoint("--endpoint", "wss://cloud.example:8443/moor"),
    liveHost: () => live,
    http: {
      request: (request: OneShotRequest) => {
        requests.push(request);
        return Promise.resolve(answers[requests.length - 1] ?? answer(500));
      },
      close: () => Promise.resolve(),
    },
  };
  return { ports, requests, hosts: () => requests.map(({ url }) => url.host) };
}

verifies(
  ["L33", "L19"],
  "a command goes to the live link's host, else to base, with its data byte for byte",
  async () => {
    for (const [live, host] of [
      [undefined, "cloud.example"],
      ["a.cloud.example", "a.cloud.example"],
    ] as const) {
      const { ports, requests } = setUp([answer(200, [], '{"id":"c1","data":{"b" : 2.0}}')], live);
      const ending = await sendOnce(ports, TOKEN, ONCE);
      expect(ending).toEqual({ kind: "result", data: new RawJson('{"b" : 2.0}') });
      expect(requests).toEqual([
        {
          method: "POST",
          path: "/v1/app/once",
          url: { host, origin: `https://${host}:8443`, path: "/moor/v1/app/once" },
          headers: [
            ["Authorization", "Bearer villa.planted-marker"],
            ["Content-Type", "application/json"],
          ],
          body: '{"id":"c1","ttl_ms":1000,"data":{"a" : 1.0}}',
          deadlineMs: 11_000,
        },
      ]);
    }
  },
);

verifies(
  "L19",
  "a 421 with one good host is followed once, with the same method, path, body and token",
  async () => {
    const { ports, requests, hosts } = setUp([
      moved("a.cloud.example"),
      answer(200, [], '{"id":"c1","data":1}'),
    ]);
    expect((await sendOnce(ports, TOKEN, ONCE)).kind).toBe("result");
    expect(hosts()).toEqual(["cloud.example", "a.cloud.example"]);
    const [first, second] = requests.map(({ url, ...rest }) => ({ ...rest, path: url.path }));
    expect(second).toEqual(first);
  },
);

verifies("L19", "what was learned from a 421 is forgotten with its request", async () => {
  const { ports, hosts } = setUp([moved("a.cloud.example"), answer(304), answer(304)]);
  await lookNow(ports, TOKEN);
  await lookNow(ports, TOKEN);
  expect(hosts()).toEqual(["cloud.example", "a.cloud.example", "cloud.example"]);
});

const BAD_421: readonly (readonly [what: string, answers: readonly OneShotAnswer[]])[] = [
  ["without a host", [moved()]],
  ["with a host twice", [moved("a.cloud.example", "a.cloud.example")]],
  ["with two hosts in one line", [moved("a.cloud.example, a.cloud.example")]],
  ["with a host of another domain", [moved("cloud.example.evil.example")]],
  ["with a port", [moved("a.cloud.example:443")]],
  ["in upper case", [moved("A.cloud.example")]],
  ["that names the host just asked", [moved("cloud.example")]],
  ["after a 421", [moved("a.cloud.example"), moved("b.cloud.example")]],
  ["that leads back", [moved("a.cloud.example"), moved("cloud.example")]],
];

for (const [what, answers] of BAD_421) {
  verifies("L19", `a 421 ${what} is an error for the caller`, async () => {
    const { ports, requests } = setUp(answers);
    expect(await sendOnce(ports, TOKEN, ONCE)).toEqual({ kind: "refused", why: "wrong-shard" });
    expect(requests).toHaveLength(answers.length);
  });
}

verifies("L19", "the header on another status, and redirects, lead nowhere", async () => {
  for (const status of [200, 301, 302, 307, 308, 401, 503]) {
    const { ports, requests } = setUp([
      answer(status, [
        ["Ftw-Shard", "a.cloud.example"],
        ["Location", "https://a.cloud.example:8443/"],
      ]),
    ]);
    await sendOnce(ports, TOKEN, ONCE);
    expect(requests, String(status)).toHaveLength(1);
  }
});

const ENDINGS: readonly (readonly [OneShotAnswer, object])[] = [
  [answer(503, [["Retry-After", "7"]]), { kind: "not_delivered", retryAfterMs: 7_000 }],
  [answer(429, []), { kind: "not_delivered", retryAfterMs: undefined }],
  [answer(503), { kind: "unknown" }],
  [answer(504), { kind: "unknown" }],
  [answer(502), { kind: "unknown" }],
  [answer(410), { kind: "expired" }],
  [answer(401), { kind: "refused", why: "auth" }],
  [answer(400), { kind: "refused", why: "bad-request" }],
  [answer(302), { kind: "unreachable", why: "not-a-link" }],
  [answer(404), { kind: "unreachable", why: "not-a-link" }],
  [answer(200, [], "<html>"), { kind: "unknown" }],
  [answer(200, [], '{"id":"c1","data":1,"data":2}'), { kind: "unknown" }],
  [
    { kind: "fault", trouble: "refused", wasWritten: false },
    { kind: "unreachable", why: "refused" },
  ],
  [{ kind: "fault", trouble: "closed", wasWritten: true }, { kind: "unknown" }],
];

test.each(ENDINGS)("a command's answer %j means %j", async (given, ending) => {
  expect(await sendOnce(setUp([given]).ports, TOKEN, ONCE)).toEqual(ending);
});

verifies("L34", "a snapshot comes with its age and tag; 304 and 404 say what they say", async () => {
  const found = setUp([
    answer(
      200,
      [
        ["Age", "3"],
        ["ETag", '"e1"'],
      ],
      '{"t" : 1.0}',
    ),
  ]);
  expect(await lookNow(found.ports, TOKEN, '"e0"')).toEqual({
    kind: "snapshot",
    data: new RawJson('{"t" : 1.0}'),
    ageMs: 3_000,
    etag: '"e1"',
  });
  const [request] = found.requests;
  expect([request?.method, request?.url.path]).toEqual(["GET", "/moor/v1/now"]);
  expect(request?.headers).toContainEqual(["If-None-Match", '"e0"']);
  expect(request?.body).toBeUndefined();
  const kindOf = async (given: OneShotAnswer) => (await lookNow(setUp([given]).ports, TOKEN)).kind;
  expect(await kindOf(answer(304))).toBe("not-modified");
  expect(await kindOf(answer(404))).toBe("unavailable");
  expect(await kindOf(answer(401))).toBe("refused");
  expect(await kindOf(answer(503))).toBe("unreachable");
  expect(await kindOf(answer(200, [], "<html>"))).toBe("unreachable");
});

test("what is out of the bounds of a command is refused before anything is sent", async () => {
  const { ports, requests } = setUp([]);
  const { data } = ONCE;
  for (const once of [
    { ...ONCE, id: "" },
    { ...ONCE, id: 'a"b' },
    { ...ONCE, id: "a".repeat(65) },
    { ...ONCE, ttlMs: -1 },
    { ...ONCE, ttlMs: 1.5 },
    { id: "c1", ttlMs: 1, data: "x".repeat(65_535) },
  ]) {
    await expect(sendOnce(ports, TOKEN, once)).rejects.toThrow(RangeError);
  }
  await expect(sendOnce(ports, TOKEN, { id: "c1", ttlMs: 1, data: undefined })).rejects.toThrow(TypeError);
  expect([requests.length, data.text]).toEqual([0, '{"a" : 1.0}']);
});
