import { ConfigError } from "@moor/runtime";
import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import { linkUrl, oneShotUrl, parseLinkEndpoint } from "@moor/client";

verifies("L9", "scheme, port and path prefix of a dial are the endpoint's; only the host is another", () => {
  const endpoint = parseLinkEndpoint("--endpoint", "wss://cloud.example:8443/moor/");
  expect(linkUrl(endpoint, "a.cloud.example", "/v1/box")).toEqual({
    host: "a.cloud.example",
    origin: "wss://a.cloud.example:8443",
    path: "/moor/v1/box",
  });
  expect(oneShotUrl(endpoint, "cloud.example", "/v1/now").origin).toBe("https://cloud.example:8443");
  expect(
    linkUrl(parseLinkEndpoint("--endpoint", "https://cloud.example"), "cloud.example", "/v1/app"),
  ).toEqual({
    host: "cloud.example",
    origin: "wss://cloud.example",
    path: "/v1/app",
  });
});

verifies("L9", "plain ws and http lead to this machine only", () => {
  for (const host of ["localhost", "moor.localhost", "127.0.0.1", "127.9.9.9", "[::1]"]) {
    expect(parseLinkEndpoint("--endpoint", `ws://${host}:8080`)).toMatchObject({
      base: host,
      isSecure: false,
    });
  }
  for (const host of ["cloud.example", "localhost.example", "10.0.0.1", "[::2]"]) {
    expect(() => parseLinkEndpoint("--endpoint", `ws://${host}:8080`)).toThrow(ConfigError);
    expect(() => parseLinkEndpoint("--endpoint", `http://${host}:8080`)).toThrow(ConfigError);
  }
});

verifies(["L9", "L4"], "what is no endpoint is refused at start, and no secret in it is repeated", () => {
  const texts = [
    "",
    "cloud.example",
    "ftp://cloud.example",
    "wss:cloud.example",
    "wss:\\\\cloud.example",
    " wss://cloud.example",
    "wss://user:marker@cloud.example",
    "wss://marker@cloud.example",
    "wss://cloud.example/?marker",
    "wss://cloud.example?",
    "wss://cloud.example/#marker",
    "wss://Cloud.example",
    "wss://cloud.example.",
    "wss://münchen.example",
    "wss://%63loud.example",
    "wss://cloud_1.example",
    "wss://0x7f.1",
    "wss://1.2.3",
    "wss://cloud.example:99999",
    "wss://",
  ];
  for (const text of texts) {
    const refused = expect(() => parseLinkEndpoint("--endpoint", text), text);
    refused.toThrow(ConfigError);
    refused.toThrow(/^(?!.*marker)/);
  }
});

verifies("L9", "a route where a prefix belongs is named as what is too much", () => {
  for (const route of ["/v1/box", "/v1/app", "/v1/app/once", "/v1/now", "/moor/v1/enroll/"]) {
    expect(() => parseLinkEndpoint("--endpoint", `wss://cloud.example${route}`)).toThrow(
      `a URL that ends in ${route.replace("/moor", "").replace(/\/$/, "")}`,
    );
  }
});
