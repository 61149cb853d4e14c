// What a drain asks of the part of an entry that holds links, and what that part tells in return.
//
// Spec: L3, L16, L24; design "Drains and restarts".
// I1  The port only does what it is told: pace, waves and bounds are the drain's.
// I2  A link is begun to be closed once; what was queued for it goes before the close.

/** Who is at the other end of a link. */
export interface LinkedClient {
  readonly home: string;
  readonly role: "box" | "app";
  /** Instance of an app as its hello names it; absent for a box. Spec L30. */
  readonly app?: string;
}

/** The links of one entry, as a drain sees them. */
export interface LinkDrainPort {
  /**
   * Sockets that got their 101 and are not closed yet: live ones, those in their handshake, and those whose close has
   * begun. Count.
   */
  links(): number;
  /** Clients that have their hello_ok and whose close has not begun. */
  clients(): Iterable<LinkedClient>;
  /**
   * From now on an upgrade is answered 503 with Retry-After before its 101. That the node is leaving refuses no upgrade by
   * itself: where a successor has the port, dials are served until the listener closes. Spec L24.
   */
  refuseDials(): void;
  /**
   * Begins to close up to `countMax` links whose close has not begun, those in their handshake too. Returns how many:
   * less than `countMax` when there were no more.
   *
   * @param reason text of the close frame, ASCII, at most 123 bytes
   */
  closeSome(countMax: number, code: number, reason: string): number;
  /** Destroys every socket whose close began `ageMs` ago or longer and is not finished. Returns how many. */
  destroyLate(ageMs: number): number;
}

/** What the holder of links reports as it happens. */
export interface LinkWatch {
  /** A client has its hello_ok from this entry. */
  linkVerified(client: LinkedClient): void;
  /** A dial at this entry came to nothing: refused before its upgrade, or ended in its handshake. */
  handshakeFailed(): void;
  /** A client of a home that this node's shards own has its hello_ok from another entry. */
  linkedElsewhere(client: LinkedClient): void;
}

/** The port of an entry that holds no links. */
export const NO_LINKS: LinkDrainPort = {
  links: () => 0,
  clients: () => [],
  refuseDials: () => {},
  closeSome: () => 0,
  destroyLate: () => 0,
};

/** A watch that nobody looks at. */
export const NO_LINK_WATCH: LinkWatch = {
  linkVerified: () => {},
  handshakeFailed: () => {},
  linkedElsewhere: () => {},
};
