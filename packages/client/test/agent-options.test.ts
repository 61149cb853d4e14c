import { parseAgentOptions, type AgentOptions } from "@moor/client";
import { ConfigError, createNodeRuntime, Secret } from "@moor/runtime";
import { verifies } from "@moor/testkit";
import { expect, test } from "vitest";
import { controlHeaders, createInstanceId } from "../src/control-headers.ts";

const OPTIONS: AgentOptions = {
  endpoint: "https://moor.example/eu/",
  tunnel: "tunnel_0123456789abcdefghijklmnopqrstuv",
  key: new Secret("key-marker"),
  channels: [{ mcpUrl: "http://10.0.0.5:3000/mcp?x=1" }],
};

function refusal(changed: Partial<AgentOptions>): string {
  try {
    parseAgentOptions({ ...OPTIONS, ...changed });
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return "accepted";
}

test("an endpoint may have a path prefix and loses its last slash", () => {
  expect(parseAgentOptions(OPTIONS).endpoint).toEqual({ origin: "https://moor.example", basePath: "/eu" });
});

verifies("T16", "plain http is only for this machine, unless it is allowed", () => {
  for (const host of ["127.0.0.1:1", "localhost:1", "a.moor.localhost", "[::1]:1", "127.9.9.9"]) {
    expect(refusal({ endpoint: `http://${host}` }), host).toBe("accepted");
  }
  for (const host of ["moor.example", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com"]) {
    expect(refusal({ endpoint: `http://${host}` }), host).toContain("plain http");
    expect(refusal({ endpoint: `http://${host}`, isInsecureAllowed: true }), host).toBe("accepted");
  }
});

verifies(["R8", "T25"], "a refused endpoint shows nothing of its user info, query or fragment", () => {
  for (const endpoint of [
    "https://user:secret-marker@moor.example",
    "https://moor.example/?key=secret-marker",
    "https://moor.example/#secret-marker",
    "ftp://secret-marker",
    "secret-marker",
  ]) {
    const text = refusal({ endpoint });
    expect(text).toContain("--endpoint: got");
    expect(text).not.toContain("secret-marker");
  }
});

verifies("R10", "configured extra headers cannot set any X-Tunnel header, nor the agent's own", () => {
  for (const name of ["X-Tunnel-Shard-Token", "x-tunnel-anything", "Authorization", "Host", "Connection"]) {
    expect(refusal({ extraHeaders: [[name, "secret-marker"]] }), name).toContain("extra header: got");
    expect(refusal({ extraHeaders: [[name, "secret-marker"]] })).not.toContain("secret-marker");
  }
  expect(refusal({ extraHeaders: [["X-Proxy-Route", "a"]] })).toBe("accepted");
});

verifies("T20", "static headers for MCP servers cannot be those of the agent's own client", () => {
  for (const name of ["Host", "Content-Length", "Expect", "accept-encoding", "Transfer-Encoding"]) {
    const mcpHeaders = [[name, "secret-marker"]] as const;
    expect(refusal({ mcpHeaders }), name).toContain("--mcp-headers-file: got");
    expect(refusal({ mcpHeaders })).not.toContain("secret-marker");
  }
  expect(refusal({ mcpHeaders: [["X-Api-Key", "a"]] })).toBe("accepted");
});

verifies("T25", "a key that cannot be a header value is refused without being shown", () => {
  for (const key of ["", "two words-marker", "line\nmarker", "é-marker"]) {
    const text = refusal({ key: new Secret(key) });
    expect(text).toContain("--key-file");
    expect(text).not.toContain("marker");
  }
});

test("numbers, ids and channels outside their ranges are refused by name", () => {
  expect(refusal({ tunnel: "tunnel_1" })).toContain("--tunnel");
  expect(refusal({ concurrency: 0 })).toContain("--concurrency");
  expect(refusal({ concurrency: 1_001 })).toContain("--concurrency");
  expect(refusal({ concurrency: 1_000 })).toBe("accepted");
  expect(refusal({ pollWaitMs: 999 })).toContain("--poll-wait-ms");
  expect(refusal({ pollWaitMs: Number.NaN })).toContain("--poll-wait-ms");
  expect(refusal({ channels: [] })).toContain("--mcp");
  expect(refusal({ channels: [{ name: "A", mcpUrl: "http://a/" }] })).toContain("--mcp-channel");
  expect(refusal({ channels: [{ mcpUrl: "http://a/" }, { name: "main", mcpUrl: "http://b/" }] })).toContain(
    "twice",
  );
  expect(refusal({ channels: [{ mcpUrl: "http://u:p-marker@a/" }] })).not.toContain("marker");
});

verifies(["R1", "T16"], "every control-plane request carries the same declared identity, once each", () => {
  const settings = parseAgentOptions({
    ...OPTIONS,
    channels: [{ mcpUrl: "http://a/" }, { name: "files", mcpUrl: "http://b/" }],
    extraHeaders: [
      ["X-Extra", "1"],
      ["Accept", "ignored"],
    ],
  });
  const lines = controlHeaders(settings, createInstanceId(createNodeRuntime()));
  const values = (name: string) => lines.filter(([line]) => line === name).map(([, value]) => value);
  expect(values("X-Tunnel-Client-Capabilities")).toEqual(["wrong-cluster-v1"]);
  expect(values("X-Tunnel-Client-Wire-Protocol-Version")).toEqual(["2026-08-25"]);
  expect(values("X-Tunnel-Client-Instance-Id")[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(values("X-Tunnel-MCP-Server-Info")).toEqual([
    '{"version":1,"channels":[{"name":"main"},{"name":"files"}]}',
  ]);
  expect(values("Authorization")).toEqual(["Bearer key-marker"]);
  expect(values("Accept")).toEqual(["application/json"]);
  expect(values("User-Agent")[0]).toMatch(/^moor-agent\//);
  expect(values("X-Extra")).toEqual(["1"]);
  expect(values("X-Tunnel-Shard-Token")).toEqual([]);
});
