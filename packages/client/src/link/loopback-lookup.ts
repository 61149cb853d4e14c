// Where names lead: those under `.localhost` to this machine itself, all others wherever the resolver says.
//
// Spec: L9; RFC 6761, 6.3 (`localhost` and what is under it are loopback, without asking a resolver).
// I1  A loopback name is never sent to a resolver, and never leads to another machine.

import { lookup as lookupInDns, type LookupOptions } from "node:dns";
import type { LookupFunction } from "node:net";

const LOOPBACK = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
] as const;

/** `lookup` for net, tls, ws and undici: 127.0.0.1, then ::1, for loopback names; else the system's. */
export const lookupLoopbackFirst: LookupFunction = (name, options, callback) => {
  if (!isLocalhostName(name)) return lookupInDns(name, options, callback);
  const wanted = LOOPBACK.filter(({ family }) => isWanted(family, options.family));
  const [first] = wanted;
  queueMicrotask(() => {
    if (first === undefined)
      callback(Object.assign(new Error("no such family"), { code: "ENOTFOUND" }), "", 0);
    else if (options.all === true)
      callback(
        null,
        wanted.map((address) => ({ ...address })),
      );
    else callback(null, first.address, first.family);
  });
};

function isWanted(family: number, asked: LookupOptions["family"]): boolean {
  if (asked === undefined || asked === 0) return true;
  return asked === family || asked === `IPv${family}`;
}

function isLocalhostName(name: string): boolean {
  const bare = name.toLowerCase().replace(/\.$/, "");
  return bare === "localhost" || bare.endsWith(".localhost");
}
