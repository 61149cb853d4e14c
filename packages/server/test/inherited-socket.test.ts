// Which inherited socket becomes the public listener: systemd's variables and public.fd together.

import { expect, test } from "vitest";
import { findInheritedSocket } from "../src/config/inherited-socket.ts";

const PID = 4711;
const sockets = (count: number, names?: string) => ({
  LISTEN_PID: String(PID),
  LISTEN_FDS: String(count),
  ...(names === undefined ? {} : { LISTEN_FDNAMES: names }),
});
const find = (asked: number | undefined, env: Record<string, string>) => findInheritedSocket(asked, env, PID);

test("nothing handed over: the socket asked for, or none", () => {
  expect(find(undefined, {})).toBeUndefined();
  expect(find(5, {})).toBe(5);
});

test("the only socket needs no name", () => {
  expect(find(undefined, sockets(1))).toBe(3);
  expect(find(undefined, sockets(1, "moor.socket"))).toBe(3);
});

test("of several sockets the one named public is it, or the one asked for", () => {
  expect(find(undefined, sockets(3, "other:public:more"))).toBe(4);
  expect(find(5, sockets(3, "other:public:more"))).toBe(5);
});

test("variables meant for another process change nothing", () => {
  expect(find(undefined, { ...sockets(1), LISTEN_PID: "1" })).toBeUndefined();
  expect(find(4, { ...sockets(1), LISTEN_PID: "1" })).toBe(4);
  for (const many of ["many", "", "-1", "0", "1e1", "0x2", " 1", "4294967296"]) {
    expect(find(undefined, { ...sockets(1), LISTEN_FDS: many })).toBeUndefined();
  }
});

test("several sockets without a name, or one asked for beyond them, end the start", () => {
  expect(() => find(undefined, sockets(2))).toThrow("LISTEN_FDS: got 2 sockets, expected one");
  expect(() => find(4, sockets(1))).toThrow("public.fd: got 4, expected a socket from 3 to 3");
});

test("several sockets named public end the start: the queue of all but one would be looked into by nobody", () => {
  const two = "LISTEN_FDS: got 2 sockets, several of them named public, expected one";
  expect(() => find(undefined, sockets(2, "public:public"))).toThrow(two);
  expect(find(4, sockets(2, "public:public"))).toBe(4);
});
