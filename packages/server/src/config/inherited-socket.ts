// A listening socket that whoever started this process hands over: systemd's socket activation.
//
// The protocol (sd_listen_fds(3)): LISTEN_PID is this process, LISTEN_FDS says how many sockets there are from number 3
// on, LISTEN_FDNAMES gives their names with colons between. Such a socket outlives the process: who dials during a restart
// waits in its queue.
// I1  Variables meant for another process are ignored: they are inherited by everything it starts.

import { ConfigError } from "@moor/runtime";

/** Number of the first socket handed over. */
const FIRST_FD = 3;

/** Name of the public listener's socket where there are several: `FileDescriptorName=public`. */
const PUBLIC_NAME = "public";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The socket of the public listener: the one asked for, else the only one or the one named `public`; undefined when none
 * was handed over. Throws ConfigError when it is not clear which, or the one asked for was not handed over.
 */
export function findInheritedSocket(asked: number | undefined, env: Env, pid: number): number | undefined {
  const names = handedOver(env, pid);
  if (names === undefined) return asked;
  const end = FIRST_FD + names.length;
  if (asked !== undefined) {
    if (asked < end) return asked;
    throw new ConfigError(
      "public.fd",
      String(asked),
      `a socket from ${FIRST_FD} to ${end - 1}, by LISTEN_FDS`,
    );
  }
  const at = names.length === 1 ? 0 : names.indexOf(PUBLIC_NAME);
  // Of two of that name one would have a queue that nobody looks into.
  if (at >= 0 && at === names.lastIndexOf(names[at] ?? "")) return FIRST_FD + at;
  throw new ConfigError(
    "LISTEN_FDS",
    `${names.length} sockets${at >= 0 ? `, several of them named ${PUBLIC_NAME}` : ""}`,
    `one, or exactly one named ${PUBLIC_NAME} in LISTEN_FDNAMES, or public.fd to say which`,
  );
}

/** The names of the sockets handed over, empty ones where none is given; undefined when there are none for this process. */
function handedOver(env: Env, pid: number): readonly string[] | undefined {
  const said = env["LISTEN_FDS"] ?? "";
  const count = /^[0-9]{1,4}$/.test(said) ? Number(said) : 0;
  const isOurs = env["LISTEN_PID"] === String(pid);
  if (!isOurs || count < 1) return undefined;
  const names = (env["LISTEN_FDNAMES"] ?? "").split(":");
  return Array.from({ length: count }, (_, at) => names[at] ?? "");
}
