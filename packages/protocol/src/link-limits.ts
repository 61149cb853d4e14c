// Every bound of the link plane, in one place. Units last in each name: bytes, milliseconds, counts.
// Spec: L4, L5, L7, L14, L15, L17, L23, L27, L28, L31, L32.
//
// I1  `…_MAX` is the largest accepted value; one more is refused or clamped, as said. I2  Byte counts are of UTF-8.

/** Bytes of a frame's `data`, as the JSON text it is: 64 KiB. More closes the link with 4400. Spec L27. */
export const LINK_DATA_BYTES_MAX = 65_536;

/** Bytes of a whole frame: `data` and 4 KiB around it. More closes the link with 4400. Spec L27. */
export const LINK_FRAME_BYTES_MAX = 69_632;

/** Bytes of the `data` of a `now` frame, which the service keeps: 4 KiB. Spec L31. */
export const NOW_BYTES_MAX = 4_096;

/** Time from the upgrade to a client's first frame, milliseconds; after it the service closes 4408. Spec L27. */
export const HELLO_WAIT_MS = 10_000;

/** Time from the upgrade to `hello_ok`, milliseconds: the service closes 4408 (L27), the client gives up (L15). */
export const HELLO_OK_WAIT_MS = 15_000;

/** Time from the start of a dial to its 101, milliseconds; after it the dial has failed. Spec L15. */
export const DIAL_WAIT_MS = 15_000;

/** Time between two pings of the service, milliseconds, where hello_ok names none. Spec L32. */
export const LINK_PING_MS_DEFAULT = 25_000;

/** Shortest time between pings a client believes, milliseconds. Spec L32. */
export const LINK_PING_MS_MIN = 5_000;

/** Longest time between pings a client believes, milliseconds. Spec L32. */
export const LINK_PING_MS_MAX = 120_000;

/** Silence that ends a link, in multiples of its `ping_ms`. Spec L32. */
export const LINK_SILENCE_FACTOR = 2.5;

/** Time a client gives the service to answer the ping it sends after a wake, milliseconds. Spec L32. */
export const WAKE_PONG_WAIT_MS = 5_000;

/** Shortest spread of a restart, milliseconds; smaller ones count as this. Spec L5, L28. */
export const SPREAD_MS_MIN = 1_000;

/** Longest spread of a restart, milliseconds; larger ones count as this. Spec L5, L28. */
export const SPREAD_MS_MAX = 60_000;

/** Spread of a restart whose reason is no number, milliseconds. Spec L5. */
export const SPREAD_MS_DEFAULT = 5_000;

/** Time since the first failure of a run that must have passed before the kept host is forgotten, milliseconds. Spec L14. */
export const SHARD_HOST_FAIL_WINDOW_MS = 30_000;

/** Failures of a run that must have been noted before the kept host is forgotten. Spec L14. */
export const SHARD_HOST_FAILS_MIN = 3;

/** Lateness of a timer that tells of a sleep, milliseconds; also the time in which reports tell of one wake. Spec L14. */
export const WAKE_LATE_MS = 5_000;

/** Upper bound of the first backoff, milliseconds; doubled with each further one. Spec L15. */
export const LINK_BACKOFF_BASE_MS = 500;

/** Upper bound of every backoff, milliseconds. Spec L15. */
export const LINK_BACKOFF_CEILING_MS = 60_000;

/** Largest backoff step. Spec L15. */
export const LINK_ATTEMPT_MAX = 16;

/** Life of a link after which its loss starts backoff at 0 again, milliseconds. Spec L15. */
export const LINK_SETTLED_MS = 60_000;

/** Life of a link that restores the credit for one instant redial, milliseconds. Spec L17. */
export const LINK_CREDIT_MS = 10_000;

/** Least backoff step of a client whose link was replaced by another of its home (4409). Spec L23. */
export const REPLACED_ATTEMPT_MIN = 5;

/** Life of a link that lifts REPLACED_ATTEMPT_MIN, milliseconds: 10 min. Spec L23. */
export const REPLACED_SETTLED_MS = 600_000;

/** Bytes of a base host or shard host: as many as a WebSocket close reason holds. Spec L4. */
export const PUBLIC_HOST_BYTES_MAX = 123;

/** Bytes of an app or extension token, `<home>.<secret>`. Spec L7. */
export const LINK_TOKEN_BYTES_MAX = 256;

/** Largest link generation: below 2^53, so that every language's numbers hold it. Spec L28. */
export const LINK_GENERATION_MAX = 9_007_199_254_740_991;
