// The address by which nodes dial each other: `tcp://host:port`, TLS or not.

/** Where to connect to. */
export interface InternalAddress {
  /** Name or address; an IPv6 address without brackets. */
  readonly host: string;
  /** 1–65535. */
  readonly port: number;
}

/** Reads `tcp://host:port`; undefined for anything else, credentials and paths included. */
export function parseInternalUrl(text: string): InternalAddress | undefined {
  const match = /^tcp:\/\/(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):([0-9]{1,5})$/i.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

/** Writes `tcp://host:port`. */
export function encodeInternalUrl({ host, port }: InternalAddress): string {
  return `tcp://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
