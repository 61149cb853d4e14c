import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { encodeLinkFrame, parseLinkFrame, type LinkSender } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const nonce = "A".repeat(43);
const sig = "A".repeat(86);
const key = "A".repeat(16);

/** One of each kind, as its sender writes it. */
const ONE_OF_EACH: readonly (readonly [LinkSender, string])[] = [
  ["box", `{"t":"hello","v":1,"home":"villa","caps":["shard"],"nonce":"${nonce}"}`],
  [
    "app",
    `{"t":"hello","v":1,"home":"villa","caps":[],"nonce":"${nonce}","token":"villa.s","app":"phone-1"}`,
  ],
  ["service", `{"t":"challenge","nonce":"${nonce}"}`],
  ["box", `{"t":"proof","sig":"${sig}"}`],
  [
    "service",
    `{"t":"hello_ok","host":"a.b","home":"villa","generation":"17","key":"${key}","sig":"${sig}","ping_ms":25000,"spread_ms":5000,"next_key":"${nonce}"}`,
  ],
  ["service", `{"t":"hello_ok","host":"a.b","home":"villa","generation":"17","key":"${key}","sig":"${sig}"}`],
  ["app", `{"t":"cmd","id":"c1","ttl_ms":5000,"data":{"on" : 1.0}}`],
  ["service", `{"t":"cmd","id":"c1","ttl_ms":0,"data":null,"app":"phone-1"}`],
  ["service", `{"t":"ack","id":"c1"}`],
  ["box", `{"t":"result","id":"c1","data":[ ]}`],
  ["service", `{"t":"result","id":"c1","data":"x"}`],
  ["box", `{"t":"outcome","id":"c1","outcome":"unknown"}`],
  ["service", `{"t":"outcome","id":"c1","outcome":"not_delivered"}`],
  ["box", `{"t":"event","data":-0.0}`],
  ["box", `{"t":"now","data":{}}`],
  ["service", `{"t":"event","data":true}`],
  ["service", `{"t":"presence","box":"online","since_ms":12}`],
  ["box", `{"t":"ping"}`],
  ["app", `{"t":"pong"}`],
  ["service", `{"t":"pong"}`],
];

const kindOf = (text: string, from: LinkSender) => parseLinkFrame(text, from).kind;
const dataOf = (text: string) => {
  const parsed = parseLinkFrame(text, "box");
  return parsed.kind === "frame" && "data" in parsed.frame ? parsed.frame.data : parsed;
};

describe("frames", () => {
  verifies(["L28", "L30", "L31", "L32"], "each kind reads, and is written as it was", () => {
    for (const [from, text] of ONE_OF_EACH) {
      const parsed = parseLinkFrame(text, from);
      expect(parsed, text).toMatchObject({ kind: "frame" });
      if (parsed.kind === "frame") expect(encodeLinkFrame(parsed.frame)).toBe(text);
      expect(parseLinkFrame(Buffer.from(text), from)).toEqual(parsed);
    }
  });

  verifies("L31", "data leaves byte for byte as it came", () => {
    const data = fc
      .tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"))
      .map(([value, indent]) => JSON.stringify(value, null, indent));
    checkProperty(
      fc.property(data, (json) => {
        expect(dataOf(`{"t":"event","data":${json}}`)).toBe(json);
        expect(dataOf(`{"data": ${json}\n,"t":"event"}`)).toBe(json);
        expect(dataOf(encodeLinkFrame({ t: "event", data: json }))).toBe(json);
      }),
    );
    for (const raw of ['{"a":1,"a":2}', "1.50e+03", '"\\u00e9\\ud800"', '"\ufeff\u00e9\u{1f600}"']) {
      expect(dataOf(`{"t":"event","data":${raw}}`)).toBe(raw);
    }
  });

  verifies("L27", "unknown kinds and fields are ignored, and so are kinds of the other side", () => {
    for (const text of [
      '{"t":"moved","to":"x"}',
      '{"t":"toString"}',
      '{"t":"__proto__"}',
      '{"t":"challenge","nonce":"x"}',
    ]) {
      expect(kindOf(text, "app"), text).toBe("ignored");
    }
    expect(kindOf('{"t":"moved"}', "service")).toBe("ignored");
    expect(parseLinkFrame('{"t":"ping","x":1,"x":2,"data":3}', "box")).toEqual({
      kind: "frame",
      frame: { t: "ping" },
    });
  });

  verifies("L27", "what is no JSON object with one kind, or says a known member twice, is malformed", () => {
    const bad = [
      "",
      "[]",
      '"t"',
      "{}",
      '{"t":1}',
      "{'t':'ping'}",
      '{"t":"ping"}x',
      '\ufeff{"t":"ping"}',
      '{"t":"ping","\\u0074":"ping"}',
    ];
    const twice = ['{"t":"event","data":1,"data":1}', '{"t":"result","id":"a","\\u0069d":"a","data":1}'];
    for (const text of [...bad, ...twice]) expect(kindOf(text, "box"), text).toBe("malformed");
    expect(parseLinkFrame(twice[0] ?? "", "box")).toEqual({
      kind: "malformed",
      reason: "member-twice",
      member: "data",
    });
  });

  verifies(
    ["L27", "L31"],
    "64 KiB of data fit and one byte more does not; a frame has 4 KiB beside, now 4 KiB in all",
    () => {
      const text = (length: number) => `"${"x".repeat(length - 2)}"`;
      for (const [t, max] of [
        ["event", 65_536],
        ["now", 4_096],
      ] as const) {
        expect(dataOf(`{"t":"${t}","data":${text(max)}}`)).toBe(text(max));
        expect(dataOf(`{"t":"${t}","data":${text(max + 1)}}`)).toMatchObject({ reason: "too-large" });
        expect(() => encodeLinkFrame({ t, data: text(max + 1) })).toThrow(RangeError);
      }
      const ping = (size: number) => `{"t":"ping"}`.padEnd(size);
      expect(kindOf(ping(69_632), "box")).toBe("frame");
      expect(kindOf(ping(69_633), "box")).toBe("malformed");
      // Bytes count, not characters.
      expect(dataOf(`{"t":"now","data":"${"\u00e9".repeat(2048)}"}`)).toMatchObject({ reason: "too-large" });
    },
  );

  verifies(["L28", "L31"], "a known member of the wrong form spoils its frame", () => {
    const cases: readonly (readonly [LinkSender, string, string])[] = [
      ["box", `{"t":"hello","v":2,"home":"villa","caps":[],"nonce":"${nonce}"}`, "v"],
      ["box", `{"t":"hello","v":1,"home":"Villa","caps":[],"nonce":"${nonce}"}`, "home"],
      ["box", `{"t":"hello","v":1,"home":"villa","caps":[1],"nonce":"${nonce}"}`, "caps"],
      ["box", `{"t":"hello","v":1,"home":"villa","caps":{},"nonce":"${nonce}"}`, "caps"],
      ["box", `{"t":"hello","v":1,"home":"villa","caps":[],"nonce":"${nonce}A"}`, "nonce"],
      ["app", `{"t":"hello","v":1,"home":"villa","caps":[],"nonce":"${nonce}","app":"a"}`, "token"],
      ["app", '{"t":"cmd","id":"a.b","ttl_ms":1,"data":1}', "id"],
      ["app", '{"t":"cmd","id":"a","ttl_ms":-1,"data":1}', "ttl_ms"],
      ["app", '{"t":"cmd","id":"a","ttl_ms":1.5,"data":1}', "ttl_ms"],
      ["app", '{"t":"cmd","id":"a","ttl_ms":1}', "data"],
      ["box", '{"t":"outcome","id":"a","outcome":"done"}', "outcome"],
      ["service", '{"t":"presence","box":"away","since_ms":1}', "box"],
      [
        "service",
        `{"t":"hello_ok","host":"a b","home":"h","generation":"1","key":"${key}","sig":"${sig}"}`,
        "host",
      ],
      [
        "service",
        `{"t":"hello_ok","host":"a","home":"h","generation":"01","key":"${key}","sig":"${sig}"}`,
        "generation",
      ],
      [
        "service",
        `{"t":"hello_ok","host":"a","home":"h","generation":"1","key":"${key}","sig":"${sig}","spread_ms":"1"}`,
        "spread_ms",
      ],
    ];
    for (const [from, text, member] of cases) {
      expect(parseLinkFrame(text, from), text).toMatchObject({ kind: "malformed", member });
    }
  });

  verifies("L27", "nothing a peer sends is thrown over", () => {
    const deep = `{"t":"event","data":${"[".repeat(30_000)}${"]".repeat(30_000)}}`;
    expect(kindOf(deep, "box")).toBe("frame");
    expect(kindOf(deep.replace('"event","data"', `"proof","sig"`), "box")).toBe("malformed");
    const mutated = fc
      .constantFrom(...ONE_OF_EACH)
      .chain(([from, text]) =>
        fc
          .tuple(
            fc.nat({ max: text.length }),
            fc.nat({ max: 4 }),
            fc.string({ unit: "binary", maxLength: 4 }),
          )
          .map(
            ([at, length, insert]) => [from, text.slice(0, at) + insert + text.slice(at + length)] as const,
          ),
      );
    checkProperty(
      fc.property(mutated, ([from, text]) => {
        const parsed = parseLinkFrame(text, from);
        if (parsed.kind !== "frame") return;
        const again = parseLinkFrame(encodeLinkFrame(parsed.frame), from);
        expect(again).toEqual(parsed);
      }),
      3000,
    );
  });
});
