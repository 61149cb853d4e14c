import * as fc from "fast-check";
import { describe, expect } from "vitest";
import { parseBaseHost, shardHostOk } from "@moor/protocol";
import { verifies } from "@moor/testkit";
import { checkProperty } from "./check-property.ts";

const base = "cloud.ftw.energy";

describe("shardHostOk", () => {
  verifies("L4", "takes the base and one label in front of it, and nothing else", () => {
    for (const host of [base, `eu-1.${base}`, `7.${base}`, `${"a".repeat(63)}.${base}`]) {
      expect(shardHostOk(host, base), host).toBe(true);
    }
    for (const host of [
      `a.b.${base}`,
      `xcloud.ftw.energy`,
      `A.${base}`,
      `a.${base}.`,
      `a.${base}:443`,
      "energy",
    ]) {
      expect(shardHostOk(host, base), host).toBe(false);
    }
  });

  verifies("L4", "whatever passes is a lower-case name that ends in the base", () => {
    const near = fc.tuple(
      fc.string({ unit: "binary", maxLength: 70 }),
      fc.constantFrom(base, `.${base}`, ` .${base}`),
    );
    checkProperty(
      fc.property(near, ([front, back]) => {
        const host = front + back;
        if (!shardHostOk(host, base)) return;
        expect(host).toMatch(/^([a-z0-9]|[a-z0-9][a-z0-9-]{0,61}[a-z0-9])?\.?cloud\.ftw\.energy$/);
        expect(new URL(`https://${host}/`).host).toBe(host);
      }),
      5000,
    );
  });

  verifies("L4", "an address as base has no shards", () => {
    for (const address of ["127.0.0.1", "[::1]"]) {
      expect(shardHostOk(address, address)).toBe(true);
      expect(shardHostOk(`a.${address}`, address)).toBe(false);
    }
  });
});

describe("parseBaseHost", () => {
  verifies("L4", "takes lower-case names and addresses as URL.hostname writes them", () => {
    for (const host of [
      base,
      "localhost",
      "moor.localhost",
      "xn--bcher-kva.example",
      "127.0.0.1",
      "[fe80::1]",
    ]) {
      expect(parseBaseHost(host), host).toBe(host);
      expect(new URL(`https://${host}/`).hostname).toBe(host);
    }
  });

  verifies("L4", "refuses what no certificate or resolver takes as it is", () => {
    const bad = [
      "",
      ".",
      "a..b",
      "Cloud.ftw.energy",
      `${base}.`,
      "-a.b",
      "a-.b",
      "a_b.c",
      "1.2.3",
      "1.2.3.256",
      "01.2.3.4",
    ];
    for (const host of [...bad, "0x7f.1", "a.0x1", "::1", "[::1", `${"a".repeat(64)}.b`, `b\u00fccher.de`]) {
      expect(parseBaseHost(host), host).toBeUndefined();
    }
    const long = `${"a".repeat(60)}.${"b".repeat(60)}.c`;
    expect(parseBaseHost(long)).toBe(long);
    expect(parseBaseHost(`${long}c`)).toBeUndefined();
    expect(shardHostOk(`d.${long}`, long)).toBe(false);
  });
});
