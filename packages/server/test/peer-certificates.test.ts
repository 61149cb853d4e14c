// Certificates that Moor makes, as OpenSSL (in Node) reads them, and the node a certificate names.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { ConfigError, Secret } from "@moor/runtime";
import { VirtualRuntime } from "@moor/testkit";
import { expect, test } from "vitest";
import { encodeNodeUri, parseCertificateIdentity } from "../src/peer/transport/certificate-identity.ts";
import { encodeInternalUrl, parseInternalUrl } from "../src/peer/transport/internal-url.ts";
import { makeAuthority, makeNodeCertificate } from "../src/peer/transport/make-certificate.ts";

const runtime = new VirtualRuntime(1, Date.UTC(2048, 5, 1));
const IDENTITY = { residency: "eu", nodeId: "n-1" };
const HOSTS = ["n-1.example", "192.0.2.7", "::1", "2001:db8::5:0:1", "::ffff:192.0.2.8"];

test("P5 · a node's certificate names it, lasts as long as asked, and signs nothing", () => {
  const authority = makeAuthority("eu", { days: 3_650, runtime });
  const made = makeNodeCertificate(authority, IDENTITY, HOSTS, { days: 100, runtime });
  const [ca, node] = [new X509Certificate(authority.certificate), new X509Certificate(made.certificate)];
  expect([ca.subject, ca.ca, node.subject, node.ca]).toEqual([
    "CN=Moor authority of eu",
    true,
    "CN=n-1",
    false,
  ]);
  expect(node.subjectAltName).toBe(
    "URI:moor://eu/node/n-1, DNS:n-1.example, IP Address:192.0.2.7, IP Address:0:0:0:0:0:0:0:1, " +
      "IP Address:2001:DB8:0:0:0:5:0:1, IP Address:0:0:0:0:0:FFFF:C000:208",
  );
  expect(parseCertificateIdentity(node.subjectAltName)).toEqual(IDENTITY);
  expect([node.checkIssued(ca), node.verify(ca.publicKey), ca.verify(ca.publicKey)]).toEqual([
    true,
    true,
    true,
  ]);
  expect(node.checkPrivateKey(keyOf(made.key))).toBe(true);
  expect(node.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  const dayMs = 24 * 3_600_000;
  expect(node.validToDate.getTime()).toBe(runtime.wallMs() + 100 * dayMs);
  expect(ca.validToDate.getTime()).toBe(runtime.wallMs() + 3_650 * dayMs); // past 2050: another form of time
  expect(node.validFromDate.getTime()).toBe(runtime.wallMs() - 300_000);
});

test("serial numbers of every shape are read back as they were made", () => {
  for (const first of [0x00, 0x01, 0x7f, 0x80, 0xff]) {
    const bytes = Uint8Array.from([first, ...Array(15).fill(1)]);
    const terms = { days: 1, runtime: { wallMs: () => 0, randomBytes: () => bytes } };
    const { serialNumber } = new X509Certificate(makeAuthority("eu", terms).certificate);
    expect(BigInt(`0x${serialNumber}`)).toBe(BigInt(`0x${Buffer.from(bytes).toString("hex")}`));
  }
});

test("a key is never shown, and only an authority signs", () => {
  const terms = { days: 1, runtime };
  const authority = makeAuthority("eu", terms);
  const node = makeNodeCertificate(authority, IDENTITY, [], terms);
  expect(JSON.stringify([authority, node])).not.toContain("PRIVATE");
  const others = [
    node,
    { certificate: authority.certificate, key: node.key },
    { certificate: "", key: authority.key },
    { certificate: authority.certificate, key: new Secret("") },
  ];
  for (const other of others) {
    expect(() => makeNodeCertificate(other, IDENTITY, [], terms)).toThrow(ConfigError);
  }
});

test.each([
  ["URI:moor://eu/node/n-1", IDENTITY],
  ["DNS:a, URI:moor://eu/node/n-1, IP Address:10.0.0.1", IDENTITY],
  ['DNS:"a, URI:moor://eu/node/x, b", URI:moor://eu/node/n-1', IDENTITY],
  ['DNS:"a\\", URI:moor://eu/node/x, b", URI:moor://eu/node/n-1', IDENTITY],
  ['DNS:"a, URI:moor://eu/node/n-1, b"', undefined],
  ["URI:moor://eu/node/n-1, URI:moor://eu/node/n-2", undefined],
  ["DNS:moor://eu/node/n-1", undefined],
  ["URI:moor://eu/node/N-1", undefined],
  ["URI:moor://eu/node/n-1/x", undefined],
  ["URI:https://eu/node/n-1", undefined],
  ["", undefined],
  [undefined, undefined],
])("P5 · among the names %j the node is %j", (names, identity) => {
  expect(parseCertificateIdentity(names)).toEqual(identity);
});

test.each([
  ["tcp://127.0.0.1:7071", { host: "127.0.0.1", port: 7071 }],
  ["tcp://node-1.internal:1", { host: "node-1.internal", port: 1 }],
  ["tcp://[::1]:65535", { host: "::1", port: 65535 }],
])("P1 · %s is an address, and is written the same way", (url, address) => {
  expect(parseInternalUrl(url)).toEqual(address);
  expect(encodeInternalUrl(address)).toBe(url);
});

test.each([
  "",
  "127.0.0.1:1",
  "http://a:1",
  "tcp://a",
  "tcp://a:0",
  "tcp://a:65536",
  "tcp://u:p@a:1",
  "tcp://a:1/x",
  "tcp://::1:1",
])("P1 · %j is no address", (url) => {
  expect(parseInternalUrl(url)).toBeUndefined();
});

test("P5 · the name of a node is written as it is read", () => {
  expect(parseCertificateIdentity(`URI:${encodeNodeUri(IDENTITY)}`)).toEqual(IDENTITY);
});

function keyOf(key: Secret) {
  return createPrivateKey(key.reveal());
}
