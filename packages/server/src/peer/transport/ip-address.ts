// IP addresses as bytes, for certificates.

import { isIPv4 } from "node:net";

/** The 4 or 16 bytes of an address that `isIP` accepts, without zone. */
export function encodeAddress(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const bytes = Buffer.alloc(16);
  // The URL parser writes every form (`::`, `::ffff:1.2.3.4`) as groups of hexadecimal digits.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [front, back] = [head, tail].map((groups) => groups.split(":").filter((group) => group !== ""));
  for (const [at, group] of (front ?? []).entries()) bytes.writeUInt16BE(Number.parseInt(group, 16), at * 2);
  const backAt = 16 - (back ?? []).length * 2;
  for (const [at, group] of (back ?? []).entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), backAt + at * 2);
  return bytes;
}
