// Every bound of the poll plane's wire, in one place (the link plane's: link-limits.ts). Units last in each name: bytes, milliseconds, counts.
// Spec: R2, R6, R13, R14, R17, R20, R24, T4–T9, T11, T12, T16–T19, T24, T25.
//
// I1  `…_MAX` is the largest accepted value; one more is refused. I2  Byte counts are of bytes on the wire, after
//     content decoding where there is any.

/** Bytes of all capability field lines joined with commas, spaces and empty members included. Spec R2. */
export const CAPABILITIES_BYTES_MAX = 4096;

/** Non-empty capability names, counted before deduplication. Spec R2. */
export const CAPABILITIES_COUNT_MAX = 64;

/** Bytes of one capability name. Spec R2. */
export const CAPABILITY_NAME_BYTES_MAX = 128;

/** Bytes of a polling token, as a header value. Spec R6. */
export const SHARD_TOKEN_BYTES_MAX = 4096;

/** Bytes of a command's token, as UTF-8. Longer: the command is dropped before its tool runs. Spec R20. */
export const COMMAND_TOKEN_BYTES_MAX = 8192;

/** Bytes of a correction's body after content decoding: read one past, then close. 64 KiB. Spec R6. */
export const CORRECTION_BODY_BYTES_MAX = 65_536;

/** Open arrays and objects at the deepest point of a correction's body; `{}` is 1. Spec R6. */
export const CORRECTION_DEPTH_MAX = 64;

/** Bytes of a response head an agent accepts, so that an oversize token is a malformed correction. 64 KiB. Spec R6. */
export const RESPONSE_HEAD_BYTES_MAX = 65_536;

/** Largest revision: the largest integer a double holds exactly, 2^53 − 1. Spec R6, R22. */
export const REVISION_MAX = 9_007_199_254_740_991;

/** Valid corrections without a success between that clear the active token. Spec R13. */
export const CORRECTIONS_MAX = 3;

/** Destination failures without a success or valid correction between that clear the active token. Spec R14. */
export const DESTINATION_FAILURES_MAX = 3;

/** Shortest delay after a failed poll, milliseconds. Spec R17. */
export const BACKOFF_BASE_MS = 200;

/** Upper bound of the delay's random part, milliseconds. Spec R17. */
export const BACKOFF_CEILING_MS = 10_000;

/** Longest wait a `Retry-After` can ask for, milliseconds; larger values count as this. Spec R17, T19. */
export const RETRY_AFTER_MS_MAX = 60_000;

/** Tokenless polls of one tunnel and instance that are corrected before one is served. Spec R24. */
export const TOKENLESS_CORRECTIONS_MAX = 3;

/** Time for which a service remembers tokenless corrections, milliseconds: 10 min. Spec R24. */
export const TOKENLESS_CORRECTIONS_MEMORY_MS = 600_000;

/** Commands in one poll answer, also when `limit` is absent. Spec T4, T17. */
export const POLL_LIMIT_MAX = 25;

/** Longest time a service holds an empty poll, milliseconds: under the 30 s at which common proxies cut. Spec T4. */
export const POLL_HOLD_MS_DEFAULT = 25_000;

/** Wait an agent asks for by default, milliseconds. Spec T17. */
export const POLL_WAIT_MS_DEFAULT = 25_000;

/** Lowest wait an agent falls back to when a proxy cuts its polls, milliseconds. Spec T17. */
export const POLL_WAIT_MS_MIN = 5_000;

/** Wait asked by the first poll after a start or a failure, milliseconds: its answer says at once whether the service
 *  works. Not 0, which a service may read as "not given". Spec T17. */
export const FIRST_POLL_WAIT_MS = 1;

/** Time an agent gives a poll beyond its configured wait, milliseconds. Spec T17. */
export const POLL_DEADLINE_SLACK_MS = 5_000;

/** Bytes of a 200 poll answer an agent reads: 25 calls of 4 MiB with their headers would be more than is sane. 64 MiB. */
export const POLL_BODY_BYTES_MAX = 64 * 1024 * 1024;

/** Bytes of a caller's message: 4 MiB. Spec T9. */
export const CALL_BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Bytes of an agent's response body: 16 MiB; a bound of ours (T6 leaves the number open). */
export const RESPONSE_BODY_BYTES_MAX = 16 * 1024 * 1024;

/** Open arrays and objects at the deepest point of a call or a response. Spec T6, T9. */
export const JSON_DEPTH_MAX = 1000;

/** Time a service gives a command by default, milliseconds: under common 60 s idle cuts. Spec T7. */
export const COMMAND_DEADLINE_MS_DEFAULT = 55_000;

/** Longest deadline a tunnel may set, milliseconds: 15 min. Spec T7. */
export const COMMAND_DEADLINE_MS_MAX = 900_000;

/** Shortest deadline a tunnel may set, milliseconds; a bound of ours. */
export const COMMAND_DEADLINE_MS_MIN = 1_000;

/** Largest `response_timeout`, milliseconds; longer ones are malformed, and so as absent: 2^63 − 1 nanoseconds (292 years),
 *  where the signed 64-bit durations of other clients overflow. Spec T5, T18. */
export const RESPONSE_TIMEOUT_MS_MAX = 9_223_372_036_854;

/** Time for which a tunnel stays connected after a poll, response or notification ended, milliseconds. Spec T12. */
export const CONNECTED_GRACE_MS = 20_000;

/** Time for which a new owner takes a tunnel's agents for alive, milliseconds. Spec T12. */
export const OWNER_GRACE_MS = 15_000;

/** Time added to a wait an agent was told (`Retry-After`) before it counts as gone, milliseconds. Spec T12. */
export const TOLD_TO_WAIT_SLACK_MS = 5_000;

/** Time between comments on an SSE answer, milliseconds. Spec T11. */
export const SSE_COMMENT_INTERVAL_MS = 15_000;

/** Bytes of an `X-Tunnel-MCP-Server-Info` value. Spec T16. */
export const SERVER_INFO_BYTES_MAX = 4096;

/** Channels an `X-Tunnel-MCP-Server-Info` value may declare. Spec T16. */
export const SERVER_INFO_CHANNELS_MAX = 32;

/** Attempts to post one final response, the first included. Spec T19. */
export const FINAL_ATTEMPTS_MAX = 3;

/** Time running commands get after SIGTERM by default, milliseconds. Spec T25. */
export const STOP_GRACE_MS_DEFAULT = 10_000;
