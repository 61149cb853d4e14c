import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import { passedResponseHeaders, targetRequestHeaders } from "../src/targets/header-policy.ts";

verifies("T20", "a command's headers win over static ones of the same name, whatever the case", () => {
  const lines = targetRequestHeaders(
    { authorization: ["Bearer caller"], Accept: ["application/json"], "X-Two": ["1", "2"] },
    [
      ["Authorization", "Bearer static"],
      ["X-Static", "yes"],
    ],
  );
  expect(lines).toEqual([
    ["authorization", "Bearer caller"],
    ["Accept", "application/json"],
    ["X-Two", "1"],
    ["X-Two", "2"],
    ["X-Static", "yes"],
    ["Content-Type", "application/json"],
  ]);
});

verifies(
  "T20",
  "Accept and Content-Type are there when nobody set them, Content-Type only with a body",
  () => {
    expect(targetRequestHeaders({}, [])).toEqual([
      ["Accept", "application/json, text/event-stream"],
      ["Content-Type", "application/json"],
    ]);
    expect(targetRequestHeaders({}, [["accept", "x/y"]], true)).toEqual([["accept", "x/y"]]);
  },
);

verifies(
  "T20",
  "hop-by-hop, Connection-named, Host, Content-Length and X-Tunnel headers never reach the target",
  () => {
    const lines = targetRequestHeaders(
      {
        Host: ["evil"],
        "Content-Length": ["9"],
        Connection: ["close, X-Named"],
        "x-named": ["1"],
        "Keep-Alive": ["1"],
        "Transfer-Encoding": ["chunked"],
        TE: ["trailers"],
        Upgrade: ["h2c"],
        "Proxy-Authorization": ["p"],
        "X-Tunnel-Shard-Token": ["t"],
        "x-tunnel-anything": ["t"],
        "Accept-Encoding": ["gzip"],
        "bad name": ["1"],
        "X-Bad-Value": ["a\r\nX-Injected: 1"],
        "X-Kept": ["ü"],
      },
      [],
      true,
    );
    expect(lines).toEqual([
      ["X-Kept", Buffer.from("ü").toString("latin1")],
      ["Accept", "application/json, text/event-stream"],
    ]);
  },
);

verifies("T6", "only the five response headers go back, and none that Connection names", () => {
  const bag = passedResponseHeaders([
    ["content-type", "application/json"],
    ["mcp-session-id", "s"],
    ["MCP-Protocol-Version", "2025-06-18"],
    ["Last-Event-ID", "4"],
    ["WWW-Authenticate", "Bearer a"],
    ["www-authenticate", "Basic b"],
    ["Set-Cookie", "c"],
    ["Server", "x"],
  ]);
  expect(bag).toEqual({
    "Content-Type": ["application/json"],
    "Mcp-Session-Id": ["s"],
    "MCP-Protocol-Version": ["2025-06-18"],
    "Last-Event-Id": ["4"],
    "WWW-Authenticate": ["Bearer a", "Basic b"],
  });
  expect(
    passedResponseHeaders([
      ["Connection", "close, Mcp-Session-Id"],
      ["Mcp-Session-Id", "s"],
    ]),
  ).toEqual({});
});
