import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { encodeServerInfo, parseServerInfo, SERVER_INFO_BYTES_MAX, type ChannelName } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const channel = fc.record({
  name: fc.stringMatching(/^[a-z0-9_-]{1,64}$/).map((text) => text as ChannelName),
  stateless: fc.boolean(),
  procAffinity: fc.boolean(),
});
const channels = fc.uniqueArray(channel, { minLength: 1, maxLength: 32, selector: ({ name }) => name });

describe("server info", () => {
  verifies("T16", "what is written is read back, within its bytes and in one canonical form", () => {
    checkProperty(
      fc.property(channels, (declared) => {
        const value = encodeServerInfo(declared);
        expect(value.length).toBeLessThanOrEqual(SERVER_INFO_BYTES_MAX);
        expect(value).not.toMatch(/false|\s/);
        expect(
          value.startsWith(declared.some(({ stateless }) => stateless) ? '{"version":2' : '{"version":1'),
        ).toBe(true);
        expect(parseServerInfo([value])).toEqual(declared);
      }),
    );
  });

  verifies("T16", "any text at all is read as channels or as absent, and never throws", () => {
    const jsonish = fc.oneof(
      fc.string(),
      fc.json(),
      channels.map((declared) => encodeServerInfo(declared).slice(0, -1)),
    );
    checkProperty(fc.property(jsonish, (text) => void parseServerInfo([text])));
  });
});
