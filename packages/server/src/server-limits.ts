// Limits of a node that are not part of the wire. The wire's own limits live in @moor/protocol.

/** Calls that may wait in one tunnel's mailbox. Count, 1 000: at 55 s a call, 18 calls/s could not drain more. Spec T12. */
export const QUEUED_CALLS_MAX = 1_000;

/** Bytes of calls that may wait in one tunnel's mailbox: eight calls of the largest size. Bytes. Spec T12. */
export const QUEUED_BYTES_MAX = 32 * 1024 * 1024;

/** Bytes of several calls in one answer to a poll: agents are known to read 64 MiB at most, and memory is shared. Bytes. */
export const HAND_OUT_BYTES_MAX = 8 * 1024 * 1024;

/** Polls that may wait on one tunnel at once: more agents than any one tunnel is known to run. Count. */
export const WAITING_POLLS_MAX = 1_000;

/** Bytes of call and answer bodies a node holds at once before it says 503 `overloaded`. Bytes. */
export const NODE_BODY_BYTES_MAX = 512 * 1024 * 1024;

/** Bytes an SSE answer may lag behind before its slow reader is cut. Bytes: one largest call. */
export const STREAM_LAG_BYTES_MAX = 4 * 1024 * 1024;

/** How often a mailbox that nothing uses is looked for and dropped. Milliseconds. */
export const MAILBOX_SWEEP_INTERVAL_MS = 60_000;

/** Shortest time between two writes of which tunnels an agent has polled. Milliseconds. */
export const SEEN_FLUSH_INTERVAL_MS = 1_000;

/** Times an entry follows `not_owner` for one call or poll before it gives up. Count. */
export const OWNER_HOPS_MAX = 3;

/** Longest header block a node reads from a peer. Bytes: an 8 KiB command token and its company fit. */
export const HEADER_BYTES_MAX = 64 * 1024;

/** Waiting time suggested with a 503 whose cause usually passes at once. Seconds. */
export const RETRY_AFTER_S = 1;

/** How long a peer that was refused mid-body may go on sending before its connection is cut. Milliseconds. */
export const REFUSED_BODY_DRAIN_MS = 2_000;

/** Pending connections the kernel keeps for a listener: Node's default of 511 drops a fleet's redial. Count. */
export const LISTEN_BACKLOG = 4_096;

/** Turns of the event loop in which a listener that is about to close takes in what waits for it. Count. */
export const ACCEPT_TURNS_MAX = 100;

/** Idle time before a node closes a kept-alive connection: above the 60 s of common proxies. Milliseconds. */
export const KEEP_ALIVE_MS = 75_000;

/** Time a peer has to send its request head. Milliseconds. */
export const REQUEST_HEAD_MS = 20_000;

/** Time a peer has to send a whole request. Milliseconds. */
export const REQUEST_MS = 60_000;

/** Time in which a peer reads nothing of a written answer before its connection is cut. Milliseconds. */
export const READ_STALL_MS = 30_000;

/** Default time a leaving node waits for the calls it holds. Milliseconds: the longest default command and 15 s. */
export const CLOSE_GRACE_MS = 70_000;

/** Time that answers under way have to reach their peers when a listener closes. Milliseconds. */
export const CLOSE_FLUSH_MS = 5_000;

/** How often a closing listener looks for connections that fell idle. Milliseconds. */
export const CLOSE_LOOK_INTERVAL_MS = 50;

/** How long a call that an entry's poll could not take is offered to other entries' polls only. Milliseconds. */
export const OFFER_RETRY_MS = 250;

/** How long a poll's entry waits for a call's entry to answer a claim. Milliseconds. */
export const CLAIM_WAIT_MS = 2_000;

/** How long a node waits for another to answer anything else. Milliseconds. */
export const PEER_ANSWER_WAIT_MS = 5_000;

/** How long a move waits for the new owner to say that it knows. Milliseconds. */
export const MOVE_ACK_WAIT_MS = 2_000;

/** How long after its TTL a written command may still be answered: a box acts within the TTL and may take its time. Milliseconds. */
export const COMMAND_LATE_ANSWER_MS = 30_000;
