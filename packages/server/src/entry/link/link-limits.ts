// Limits of the links an entry holds. The wire's own limits live in @moor/protocol.
//
// Spec: L25, L27, L32. A fleet that redials as it was told comes from few addresses (carriers' NAT) within seconds: what is
// counted per address is work that failed or is not finished, never success.

/** How often the wheel looks at links that are due. Milliseconds: bounds how late a ping or a cut is. */
export const WHEEL_TICK_MS = 500;

/** Slots of the wheel. Count: 64 s, above the longest common wait (silence at the default ping). */
export const WHEEL_SLOTS = 128;

/** Between two pings of a link. Milliseconds: below the 30 s at which common proxies cut idle connections. Spec L32. */
export const PING_INTERVAL_MS = 25_000;

/** Links in their handshake, all addresses together. Count: some 10 KB each. */
export const HANDSHAKES_MAX = 16_384;

/** Links in their handshake from one address. Count: a fleet behind one NAT, redialling without a spread, fits. */
export const HANDSHAKES_PER_ADDRESS_MAX = 6_000;

/** Signatures that wait to be checked, all addresses together. Count: about a second of one core. */
export const SIGNATURES_WAITING_MAX = 8_192;

/** Signatures that wait to be checked for one address. Count. */
export const SIGNATURES_PER_ADDRESS_MAX = 4_096;

/** Signatures under check at once. Count: keeps every thread of the pool busy and the event loop two thirds idle. */
export const SIGNATURES_RUNNING_MAX = 8;

/** Handshakes of one home that succeed in a row without a pause, and how fast the allowance comes back. Spec L25. */
export const HOME_HANDSHAKES = { capacity: 120, perS: 2 } as const;

/** One-shots and snapshots of one home at one entry. Spec L25. */
export const HOME_ONE_SHOTS = { capacity: 200, perS: 20 } as const;

/** Enrolments tried from one address. Spec L25. */
export const ENROLMENTS = { capacity: 10, perS: 0.1 } as const;

/** Body of an enrolment: a code and a key. Bytes. */
export const ENROLL_BODY_BYTES_MAX = 4_096;

/** What a frame costs beside its bytes, so that tiny frames are bounded too. Bytes. */
export const FRAME_COST_BYTES = 2_048;

/** What one link may send, frames at their cost. Bytes: 512 small frames a second, 4 096 in a row. Spec L25. */
export const LINK_RATE = { capacity: 8 * 1024 * 1024, perS: 1024 * 1024 } as const;

/**
 * What a link may send before it is online, frames at their cost. Bytes: one of the largest and 29 small ones. Whoever can
 * reach the port may say this much; a handshake is two frames. Spec L25.
 */
export const HANDSHAKE_BYTES_MAX = 128 * 1024;

/** What waits for a peer that reads too slowly before it is cut. Bytes: some of the largest frames. Spec L25. */
export const LINK_LAG_BYTES_MAX = 512 * 1024;

/** Commands of one app link that have no ending yet. Count. */
export const COMMANDS_PER_LINK_MAX = 64;

/** How long a link waits for an owner that cannot be reached now. Milliseconds; then 4503. */
export const OWNER_WAIT_MS = 2_000;

/** How long a link that changes its owner may be between the two. Milliseconds: no presence flickers for it. */
export const REGISTERING_MS = 5_000;

/** How long an entry that knows its view to be old waits for a newer one. Milliseconds. Spec L21. */
export const CATCH_UP_WAIT_MS = 1_000;

/** How long a mover's target has to say that it knows. Milliseconds. Spec L21. */
export const MOVE_ACK_WAIT_MS = 2_000;

/** How long a peer has to answer a close before its socket is destroyed. Milliseconds. Spec L24. */
export const CLOSE_WAIT_MS = 5_000;

/** How long a shard has to answer a question about a home. Milliseconds. */
export const SHARD_ANSWER_WAIT_MS = 5_000;

/** Longest TTL of a command; a longer one counts as this. Milliseconds: as long as results are kept. */
export const COMMAND_TTL_MS_MAX = 600_000;

/** Longest TTL of a one-shot. Milliseconds: below ONCE_WAIT_MS_MAX. */
export const ONCE_TTL_MS_MAX = 55_000;

/** Longest time a one-shot waits for its answer. Milliseconds: below the 60 s after which common proxies give up. */
export const ONCE_WAIT_MS_MAX = 58_000;

/** Keys of a table of allowances before the fullest are dropped. Count. */
export const BUCKET_KEYS_MAX = 50_000;
