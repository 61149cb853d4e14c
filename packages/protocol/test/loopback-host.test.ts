import { expect } from "vitest";
import { verifies } from "@moor/testkit";
import { isLoopbackHost } from "../src/loopback-host.ts";

verifies(
  ["T10", "T16"],
  "this machine's own names are loopback hosts, and what only looks like one is none",
  () => {
    const own = [
      "localhost",
      "LOCALHOST",
      "localhost.",
      "a.moor.localhost",
      "127.0.0.1",
      "127.9.9.9",
      "::1",
      "[::1]",
    ];
    const foreign = [
      "",
      "localhost.example",
      "notlocalhost",
      "127.0.0.1.example",
      "127.1",
      "128.0.0.1",
      "::2",
      "0.0.0.0",
    ];
    expect(own.filter((host) => !isLoopbackHost(host))).toEqual([]);
    expect(foreign.filter(isLoopbackHost)).toEqual([]);
  },
);
