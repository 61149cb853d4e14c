// A listening socket that this process holds and never accepts from: what systemd's socket activation gives a service.
//
// I1  It stays open, with its queue, whoever inherits it comes and goes.

export interface HeldSocket {
  readonly port: number;
  /** Its number in this process. */
  readonly fd: number;
  close(): void;
}

/** What is used of Node's own TCP handle: a net.Server would accept what waits for the process under test. */
interface TcpHandle {
  readonly fd: number;
  bind(address: string, port: number): number;
  getsockname(to: { port?: number }): number;
  close(): void;
}

interface TcpBinding {
  readonly TCP: new (type: number) => TcpHandle;
  readonly constants: { readonly SERVER: number };
}

/** Binds a free port of an IPv4 address; who inherits it listens. */
export function holdSocket(address = "127.0.0.1"): HeldSocket {
  const { binding } = process as unknown as { readonly binding: (name: "tcp_wrap") => TcpBinding };
  const { TCP, constants: types } = binding("tcp_wrap");
  const handle = new TCP(types.SERVER);
  const failure = handle.bind(address, 0);
  if (failure !== 0) throw new Error(`cannot bind a socket: ${failure}`);
  const name: { port?: number } = {};
  handle.getsockname(name);
  return { port: name.port ?? 0, fd: handle.fd, close: () => handle.close() };
}
