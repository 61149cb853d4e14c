// Who is at the other end of a connection: its address, or the one that a configured proxy names.
//
// Spec: L25. Design: "Rules that shape the code" (the client address comes from configured proxies only).
// I1  X-Forwarded-For is read only from a proxy that the configuration names, from the right, past such proxies only:
//     what a client wrote itself further left is never believed.
// I2  An IPv6 client counts by its /64: one customer has that many addresses for nothing.

import { BlockList, isIP } from "node:net";

/** Addresses and networks (`10.0.0.0/8`, `::1`) as a list to look in; undefined when one of them is neither. */
export function parseProxies(texts: readonly string[]): BlockList | undefined {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix, ...rest] = text.split("/");
    const version = isIP(address);
    const bits = version === 6 ? 128 : 32;
    const length = prefix === undefined ? bits : Number(prefix);
    const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && length <= bits);
    if (version === 0 || rest.length > 0 || !isPrefix) return undefined;
    list.addSubnet(address, length, version === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/**
 * The address that limits count by.
 *
 * @param remote address of the connection's other end; undefined when it is gone already
 * @param forwarded lines of X-Forwarded-For, in order
 * @param proxies whose word is taken
 */
export function clientAddress(
  remote: string | undefined,
  forwarded: readonly string[],
  proxies: BlockList,
): string {
  let known = plainAddress(remote ?? "");
  if (known === undefined) return "unknown";
  const named = forwarded.join(",").split(",");
  while (isListed(proxies, known)) {
    const next = plainAddress(named.pop()?.trim() ?? "");
    if (next === undefined) break;
    known = next;
  }
  return isIP(known) === 6 ? networkOf(known) : known;
}

/** An address without port, brackets, zone or IPv4-in-IPv6 wrapping. */
function plainAddress(text: string): string | undefined {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  const address = bare.replace(/%.*$/, "");
  const inner = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  const plain = inner ?? address;
  return isIP(plain) === 0 ? undefined : plain;
}

function isListed(proxies: BlockList, address: string): boolean {
  return proxies.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** The first 64 bits of an IPv6 address, written in full. */
function networkOf(address: string): string {
  const [head = "", tail] = address.toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const right = tail === "" ? [] : tail.split(":");
    // A last group in dotted form stands for two.
    const width = right.length + (right.at(-1)?.includes(".") === true ? 1 : 0);
    while (groups.length < 8 - width) groups.push("0");
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.padStart(4, "0"))
    .join(":")}::/64`;
}
