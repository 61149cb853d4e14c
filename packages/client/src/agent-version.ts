// What the agent calls itself on the wire. Spec: T16.

/** Value of `X-Tunnel-Client-Name`. */
export const AGENT_NAME = "moor-agent";

/** Value of `X-Tunnel-Client-Version`: the version of this package. */
export const AGENT_VERSION = "0.1.0";
