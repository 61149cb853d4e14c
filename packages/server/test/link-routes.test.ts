// One-shots, snapshots and enrolment over plain HTTP.

import { ProtocolError, type HomeId } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { describe, expect, test } from "vitest";
import type { EnrolmentOutcome } from "../src/directory/directory.ts";
import { parseProxies } from "../src/entry/client-address.ts";
import { handleLinkRoute, type LinkRoutes } from "../src/entry/link/link-routes.ts";
import { RateBuckets } from "../src/entry/link/rate-buckets.ts";
import { EntryLinks, makeKeyPair } from "./support/entry-links.ts";
import { FakeExchange, type FakeRequest } from "./support/fake-exchange.ts";

class Desk {
  readonly entry = new EntryLinks();
  readonly redeemed: string[] = [];
  redeem: () => Promise<EnrolmentOutcome> = async () => ({ kind: "refused" });
  readonly routes: LinkRoutes;

  constructor() {
    const { entry } = this;
    for (const [home, shard] of [
      ["h1", "s1"],
      ["h2", "s2"],
    ] as const)
      entry.addHome(home, shard);
    const { context } = entry.table;
    this.routes = {
      table: entry.table,
      requests: { context, allowances: new RateBuckets({ capacity: 50, perS: 1 }, 100) },
      enrolments: {
        context,
        directory: {
          redeemEnrolment: async (code, publicKey) => {
            this.redeemed.push(`${code} ${publicKey}`);
            return this.redeem();
          },
        },
        proxies: parseProxies(["10.0.0.0/8"]) as never,
        allowances: new RateBuckets({ capacity: 10, perS: 0.1 }, 100),
      },
    };
  }

  async send(request: FakeRequest, routes: LinkRoutes | undefined = this.routes): Promise<FakeExchange> {
    const exchange = new FakeExchange(request, "req_1");
    void handleLinkRoute(routes, exchange);
    await this.entry.runtime.advanceAsync(0);
    return exchange;
  }

  once(
    token: string,
    options: { readonly host?: string; readonly body?: string; readonly more?: readonly string[] } = {},
  ) {
    const {
      host = "moor.localhost",
      body = '{"id":"c1","ttl_ms":5000,"data":{"on":true}}',
      more = [],
    } = options;
    return this.send({
      method: "POST",
      path: "/v1/app/once",
      rawHeaders: [
        "Host",
        host,
        "Authorization",
        `Bearer ${token}`,
        "Content-Type",
        "application/json",
        ...more,
      ],
      body,
    });
  }

  now(token: string, more: readonly string[] = [], host = "moor.localhost"): Promise<FakeExchange> {
    return this.send({
      path: "/v1/now",
      rawHeaders: ["Host", host, "Authorization", `Bearer ${token}`, ...more],
    });
  }

  enroll(body: string | object, options: Partial<FakeRequest> = {}): Promise<FakeExchange> {
    return this.send({
      method: "POST",
      path: "/v1/enroll",
      rawHeaders: ["Host", "moor.localhost"],
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...options,
    });
  }

  end(id: string, ending: Parameters<EntryLinks["table"]["port"]["commandEnded"]>[1]): void {
    const command = this.entry.shard("s1").commands.find((sent) => sent.id === id);
    if (command !== undefined) this.entry.table.port.commandEnded(command.submission, ending);
  }
}

/** Status and error code. */
function outcome({ status, errorCode }: FakeExchange): string {
  return `${status} ${errorCode ?? ""}`.trim();
}

describe("one-shots", () => {
  verifies("L33", "a command's result is the answer, byte for byte", async () => {
    const desk = new Desk();
    const exchange = await desk.once(desk.entry.addToken("h1"), {
      body: '{"data": {"on":1.0} ,"id":"c1","x":[],"ttl_ms":5000}',
    });
    expect(desk.entry.shard("s1").commands[0]).toMatchObject({
      id: "c1",
      app: undefined,
      remainingMs: 5_000,
      data: '{"on":1.0}',
    });
    expect(exchange.status).toBeUndefined();
    desk.end("c1", { kind: "result", data: '{ "ok":1.0}' });
    await desk.entry.runtime.advanceAsync(0);
    expect([exchange.status, exchange.text]).toEqual([200, '{"id":"c1","data":{ "ok":1.0}}']);
  });

  verifies(["L20", "L33"], "each ending has its status, and 503 says when to ask again", async () => {
    const cases = [
      [{ kind: "unknown" }, "504 command_unknown"],
      [{ kind: "not-delivered", why: "no-box" }, "503 command_not_delivered"],
      [{ kind: "expired" }, "410 command_expired"],
    ] as const;
    for (const [ending, expected] of cases) {
      const desk = new Desk();
      const exchange = await desk.once(desk.entry.addToken("h1"));
      desk.end("c1", ending);
      await desk.entry.runtime.advanceAsync(0);
      expect(outcome(exchange)).toBe(expected);
      expect(exchange.headers["Retry-After"]).toBe(ending.kind === "not-delivered" ? "1" : undefined);
    }
  });

  verifies(
    "L33",
    "one that its box has and does not answer is unknown before a proxy gives it up at 60 s",
    async () => {
      for (const [ttlMs, endsAtMs] of [
        [5_000, 35_000],
        [55_000, 58_000],
        [600_000, 58_000],
      ] as const) {
        const desk = new Desk();
        const { runtime, table } = desk.entry;
        const exchange = await desk.once(desk.entry.addToken("h1"), {
          body: `{"id":"c1","ttl_ms":${ttlMs},"data":1}`,
        });
        const [sent] = desk.entry.shard("s1").commands;
        if (sent === undefined) throw new Error("not sent");
        table.port.commandWritten(sent.submission);
        await runtime.advanceAsync(endsAtMs - 100);
        expect(exchange.status).toBeUndefined();
        await runtime.advanceAsync(1_000);
        expect(outcome(exchange)).toBe("504 command_unknown");
        expect(desk.entry.shard("s1").heard.at(-1)).toBe("withdraw-command h1 c1");
      }
    },
  );

  test("what is no command is refused before it leaves this node", async () => {
    const cases: readonly [string, string][] = [
      ["nonsense", "400 invalid_json_payload"],
      ["[]", "400 invalid_json_payload"],
      ['{"ttl_ms":1,"data":1}', "400 invalid_request"],
      ['{"id":"a b","ttl_ms":1,"data":1}', "400 invalid_request"],
      ['{"id":"c","id":"c","ttl_ms":1,"data":1}', "400 invalid_request"],
      ['{"id":"c","ttl_ms":-1,"data":1}', "400 invalid_request"],
      ['{"id":"c","ttl_ms":1.5,"data":1}', "400 invalid_request"],
      ['{"id":"c","ttl_ms":"1","data":1}', "400 invalid_request"],
      ['{"id":"c","ttl_ms":1}', "400 invalid_request"],
      [`{"id":"c","ttl_ms":1,"data":"${"x".repeat(65_536)}"}`, "413 request_body_too_large"],
      [`{"id":"c","ttl_ms":1,"data":"${"x".repeat(70_000)}"}`, "413 request_body_too_large"],
    ];
    for (const [body, expected] of cases) {
      const desk = new Desk();
      expect(outcome(await desk.once(desk.entry.addToken("h1"), { body }))).toBe(expected);
      expect(desk.entry.shard("s1").commands).toEqual([]);
    }
  });

  verifies("L7", "every bad token gets the same 401, and a token of the other kind is one", async () => {
    const desk = new Desk();
    const good = desk.entry.addToken("h1");
    const extension = desk.entry.addToken("h1", "extension");
    const answers = await Promise.all(
      [`${good}x`, "dotless", "h1.", "", extension, "unknown.x"].map((token) => desk.once(token)),
    );
    for (const exchange of answers) {
      expect(outcome(exchange)).toBe("401 unauthorized");
      expect(exchange.text).toBe(answers[0]?.text);
      expect(exchange.headers).toEqual(answers[0]?.headers);
    }
    expect(outcome(await desk.now(good))).toBe("401 unauthorized");
  });

  verifies(
    "L2",
    "421 names the home's host once, to bearers of a good token only, and is never stored",
    async () => {
      const desk = new Desk();
      const exchange = await desk.once(desk.entry.addToken("h2"));
      expect(outcome(exchange)).toBe("421 wrong_shard");
      expect(exchange.headers).toMatchObject({
        "Ftw-Shard": "s2.moor.localhost",
        "Cache-Control": "no-store",
      });
      expect(outcome(await desk.once("h2.unknown"))).toBe("401 unauthorized");
      const there = await desk.once(desk.entry.addToken("h2"), { host: "s2.moor.localhost" });
      expect(there.status).toBeUndefined();
      const stray = await desk.once(desk.entry.addToken("h1"), { host: "s2.moor.localhost:8443" });
      expect(stray.headers["Ftw-Shard"]).toBe("moor.localhost");
    },
  );

  verifies(
    ["L2", "L21"],
    "an unknown Host is 421 without a header; a home on a shard that is not live is 503",
    async () => {
      const desk = new Desk();
      const token = desk.entry.addToken("h2");
      const unknown = await desk.once(token, { host: "evil.example" });
      expect(outcome(unknown)).toBe("421 wrong_shard");
      expect(unknown.headers["Ftw-Shard"]).toBeUndefined();
      expect(outcome(await desk.once(token, { host: "localhost" }))).toBe("undefined");
      desk.entry.setState("s2", "draining");
      const waiting = await desk.once(token);
      expect(outcome(waiting)).toBe("503 link_plane_unavailable");
      expect(waiting.headers["Retry-After"]).toBe("5");
    },
  );

  verifies(
    "L25",
    "a home has an allowance of one-shots, and a client that leaves withdraws its command",
    async () => {
      const desk = new Desk();
      const token = desk.entry.addToken("h1");
      const first = await desk.once(token);
      first.leave();
      expect(desk.entry.shard("s1").heard.at(-1)).toBe("withdraw-command h1 c1");
      for (let at = 0; at < 49; at += 1) await desk.now(desk.entry.addToken("h1", "extension"));
      const refused = await desk.once(token);
      expect(outcome(refused)).toBe("429 rate_limit_exceeded");
      expect(refused.headers["Retry-After"]).toBe("1");
      expect(
        (await desk.once(desk.entry.addToken("h2"), { host: "s2.moor.localhost" })).status,
      ).toBeUndefined();
    },
  );

  verifies("L24", "a node that refuses dials takes no new one-shot", async () => {
    const desk = new Desk();
    desk.entry.table.drain.refuseDials();
    expect(outcome(await desk.once(desk.entry.addToken("h1")))).toBe("503 node_draining");
  });
});

describe("snapshots", () => {
  verifies(
    "L34",
    "the kept snapshot is answered with its age and tag, and 304 only to who names it",
    async () => {
      const desk = new Desk();
      const token = desk.entry.addToken("h1", "extension");
      desk.entry.shard("s1").now = { kind: "snapshot", data: '{ "w":3}', ageMs: 12_900, etag: "e1" };
      const first = await desk.now(token);
      expect([first.status, first.text]).toEqual([200, '{ "w":3}']);
      expect(first.headers).toMatchObject({ Age: "12", ETag: '"e1"', "Content-Type": "application/json" });
      const cases: readonly [string, number][] = [
        ['"e1"', 304],
        ['W/"e1"', 304],
        ['"e0", "e1"', 304],
        ["*", 304],
        ['"e2"', 200],
        ["e1", 200],
      ];
      for (const [named, status] of cases) {
        const again = await desk.now(token, ["If-None-Match", named]);
        expect(again.status).toBe(status);
        expect(again.headers["ETag"]).toBe('"e1"');
        if (status === 304) expect(again.text).toBe("");
      }
    },
  );

  verifies(
    "L34",
    "no snapshot is 404, an owner out of reach or silent 503, a home elsewhere 421",
    async () => {
      const desk = new Desk();
      const token = desk.entry.addToken("h1", "extension");
      expect(outcome(await desk.now(token))).toBe("404 now_unavailable");
      desk.entry.shard("s1").isSilent = true;
      const silent = await desk.now(token);
      await desk.entry.runtime.advanceAsync(5_000);
      expect(outcome(silent)).toBe("503 link_plane_unavailable");
      desk.entry.away.add("s1");
      expect(outcome(await desk.now(token))).toBe("503 link_plane_unavailable");
      const elsewhere = await desk.now(desk.entry.addToken("h2", "extension"));
      expect([outcome(elsewhere), elsewhere.headers["Ftw-Shard"]]).toEqual([
        "421 wrong_shard",
        "s2.moor.localhost",
      ]);
    },
  );

  verifies("L21", "a shard that knows better is followed: by this node, or by the client", async () => {
    const desk = new Desk();
    desk.entry.addHome("h3", "s1", 1);
    const token = desk.entry.addToken("h3", "extension");
    desk.entry.shard("s1").now = { kind: "not-owner", placement: { shard: "s2" as never, revision: 5 } };
    const told = await desk.now(token);
    expect([outcome(told), told.headers["Ftw-Shard"]]).toEqual(["421 wrong_shard", "s2.moor.localhost"]);
    desk.entry.addHome("h3", "s1", 6);
    desk.entry.shard("s1").now = { kind: "not-owner", placement: { shard: "s2" as never, revision: 7 } };
    desk.entry.shard("s2").now = { kind: "snapshot", data: "1", ageMs: 0, etag: "e" };
    expect((await desk.now(token, [], "127.0.0.1")).text).toBe("1");
    desk.entry.shard("s2").now = { kind: "not-owner", placement: undefined };
    expect(outcome(await desk.now(token, [], "127.0.0.1"))).toBe("503 link_plane_unavailable");
  });
});

describe("pages of other origins", () => {
  const CORS = {
    "Access-Control-Allow-Origin": "https://app.example",
    "Access-Control-Expose-Headers": "Ftw-Shard, Retry-After, ETag, Age",
    Vary: "Origin",
  };
  const origin = ["Origin", "https://app.example"];

  verifies("L2", "every answer carries what a page needs to read it, whatever its status", async () => {
    const desk = new Desk();
    const [app, extension] = [desk.entry.addToken("h1"), desk.entry.addToken("h1", "extension")];
    const answered = await desk.once(app, { more: origin });
    desk.end("c1", { kind: "result", data: "1" });
    await desk.entry.runtime.advanceAsync(0);
    desk.entry.shard("s1").now = { kind: "snapshot", data: "1", ageMs: 0, etag: "e" };
    const answers = [
      answered,
      await desk.once("bad", { more: origin }),
      await desk.once(desk.entry.addToken("h2"), { more: origin }),
      await desk.once(app, { more: origin, host: "evil.example" }),
      await desk.once(app, { more: origin, body: "x" }),
      await desk.send({ method: "PUT", path: "/v1/app/once", rawHeaders: origin }),
      await desk.now(extension, origin),
      await desk.now(extension, [...origin, "If-None-Match", '"e"']),
      await desk.now("bad", origin),
      await desk.send({ method: "POST", path: "/v1/now", rawHeaders: origin }),
    ];
    const statuses = [200, 401, 421, 421, 400, 405, 200, 304, 401, 405];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    for (const { headers } of answers) expect(headers).toMatchObject(CORS);
    const plain = await desk.now(extension);
    expect(plain.headers).toMatchObject({ ...CORS, "Access-Control-Allow-Origin": "*" });
  });

  verifies(
    "L2",
    "any node answers a preflight without authentication, and its 503 can be read too",
    async () => {
      for (const path of ["/v1/app/once", "/v1/now"]) {
        for (const withLinks of [true, false]) {
          const desk = new Desk();
          const routes = withLinks ? desk.routes : undefined;
          const exchange = new FakeExchange({ method: "OPTIONS", path, rawHeaders: origin }, "req_1");
          await handleLinkRoute(routes, exchange);
          expect(exchange.status).toBe(204);
          expect(exchange.headers).toMatchObject({
            ...CORS,
            "Access-Control-Allow-Methods": "GET, POST",
            "Access-Control-Allow-Headers": "authorization, content-type, if-none-match",
          });
        }
      }
      const method = { "/v1/app/once": "POST", "/v1/now": "GET" } as const;
      for (const [path, verb] of Object.entries(method)) {
        const exchange = new FakeExchange({ method: verb, path, rawHeaders: origin }, "req_1");
        await handleLinkRoute(undefined, exchange);
        expect(outcome(exchange)).toBe("503 link_plane_unavailable");
        expect(exchange.headers).toMatchObject({ ...CORS, "Retry-After": "1" });
      }
    },
  );
});

describe("enrolment", () => {
  const pair = makeKeyPair();
  const wanted = { code: "ABCD-EFGHJKMN-PQRSTVWX", publicKey: pair.raw };

  verifies("L28", "a code and a key make a box its home's, and it is told the service's keys", async () => {
    const desk = new Desk();
    desk.redeem = async () => ({ kind: "ok", home: "h1" as HomeId, serviceKeys: ["k1", "k2"] });
    const exchange = await desk.enroll(wanted);
    expect([exchange.status, exchange.json]).toEqual([200, { home: "h1", serviceKeys: ["k1", "k2"] }]);
    expect(exchange.headers["Cache-Control"]).toBe("no-store");
    expect(desk.redeemed).toEqual([`${wanted.code} ${pair.raw}`]);
  });

  test("every failure is the same 401, and what is no key costs the code nothing", async () => {
    const desk = new Desk();
    const bodies = [
      wanted,
      "nonsense",
      "null",
      "[]",
      {},
      { code: wanted.code },
      { ...wanted, publicKey: "short" },
      { ...wanted, publicKey: `${pair.raw}=` },
      { ...wanted, code: 7 },
    ];
    const answers = await Promise.all(bodies.map((body) => desk.enroll(body)));
    for (const exchange of answers) {
      expect(outcome(exchange)).toBe("401 enrolment_refused");
      expect(exchange.text).toBe(answers[0]?.text);
    }
    expect(desk.redeemed).toHaveLength(1);
  });

  verifies("L25", "tries are counted by client address", async () => {
    const desk = new Desk();
    const from = (address: string, forwarded = "") => ({
      remoteAddress: address,
      rawHeaders: ["Host", "moor.localhost", "X-Forwarded-For", forwarded],
    });
    for (let at = 0; at < 10; at += 1) await desk.enroll(wanted, from("6.6.6.6", `1.1.1.${at}`));
    const refused = await desk.enroll(wanted, from("6.6.6.6", "1.1.1.99"));
    expect(outcome(refused)).toBe("429 rate_limit_exceeded");
    expect(refused.headers["Retry-After"]).toBe("10");
    expect(outcome(await desk.enroll(wanted, from("10.0.0.1", "7.7.7.7")))).toBe("401 enrolment_refused");
  });

  test("a directory that is away is a 503 without its words, a foreign Host a 421, a large body a 413", async () => {
    const desk = new Desk();
    desk.redeem = async () => {
      throw new ProtocolError("directory_unavailable", {
        message: "postgres://secret",
        data: { outcome: "unknown" },
      });
    };
    const away = await desk.enroll(wanted);
    expect(outcome(away)).toBe("503 directory_unavailable");
    expect(away.text).not.toContain("secret");
    expect(outcome(await desk.enroll(wanted, { rawHeaders: ["Host", "evil.example"] }))).toBe(
      "421 wrong_shard",
    );
    expect(outcome(await desk.enroll("x".repeat(5_000)))).toBe("413 request_body_too_large");
    expect(outcome(await desk.send({ path: "/v1/enroll" }))).toBe("405 method_not_allowed");
  });
});

test("the paths of WebSockets are 426 to a plain request, and 503 at a node without links", async () => {
  const desk = new Desk();
  for (const path of ["/v1/box", "/v1/app"]) {
    const plain = await desk.send({ path });
    expect(outcome(plain)).toBe("426 upgrade_required");
    expect(plain.headers).toMatchObject({ Upgrade: "websocket", Connection: "Upgrade" });
    const exchange = new FakeExchange({ path }, "req_1");
    await handleLinkRoute(undefined, exchange);
    expect(outcome(exchange)).toBe("503 link_plane_unavailable");
  }
  expect(handleLinkRoute(desk.routes, new FakeExchange({ path: "/v1/other" }, "req_1"))).toBeUndefined();
});
