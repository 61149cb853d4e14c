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

/** Time a peer has for its TLS handshake. Milliseconds: clients give up after 15 s (L15); Node's default is 120 s. */
export const TLS_HANDSHAKE_MS = 15_000;

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

/** App links of one home: every phone and browser of a large household, and their half-dead predecessors. Count. Spec L25. */
export const HOME_APP_LINKS_MAX = 64;

/** Time told to an app that found its home full. Milliseconds. Spec L25. */
export const HOME_BUSY_WAIT_MS = 30_000;

/** Commands of one home that somebody waits for at once. Count. Spec L25. */
export const HOME_COMMANDS_OPEN_MAX = 256;

/** Bytes of one home's commands that are not written to its box yet. Bytes, 4 MiB: 64 of the largest. Spec L25. */
export const HOME_COMMAND_BYTES_MAX = 4 * 1024 * 1024;

/** How long a command's id is known after its result, or after it was written. Milliseconds, 10 min. Spec L31, L33. */
export const HOME_RESULT_KEPT_MS = 600_000;

/** Results that one home's repeats may still ask for; also ids of written commands that nobody waits for. Count. */
export const HOME_RESULTS_KEPT_MAX = 1_000;

/** Bytes of one home's kept results. Bytes, 4 MiB. */
export const HOME_RESULT_BYTES_MAX = 4 * 1024 * 1024;

/** Bytes of commands, results and snapshots that the homes of one node's shards hold together. Bytes, 256 MiB. */
export const NODE_HOME_BYTES_MAX = 256 * 1024 * 1024;

/** Share of NODE_HOME_BYTES_MAX that results may fill, with whatever is there: the box has them too. Of 1. */
export const HOME_RESULTS_SHARE = 0.5;

/** Share of NODE_HOME_BYTES_MAX that snapshots may fill, with whatever is there: commands find room beside both. Of 1. */
export const HOME_SNAPSHOTS_SHARE = 0.75;

/** How long after its TTL a written command may still be answered: a box acts within the TTL and may take its time. Milliseconds. */
export const COMMAND_LATE_ANSWER_MS = 30_000;

/** How long a shard waits to hear whether a command was written to a link that ended meanwhile. Milliseconds. */
export const COMMAND_SETTLE_WAIT_MS = 5_000;

/** How long a shard that starts or gains a home waits for its box before it calls it offline. Milliseconds. Spec L31. */
export const PRESENCE_HOLD_MS = 15_000;

/** Time a box needs to be linked once it dials: what is added to the time in which it was told to. Milliseconds. */
export const PRESENCE_SLACK_MS = 5_000;

/** Longest time a box that was told to come back counts as neither there nor gone: the longest spread and 5 s. Milliseconds. */
export const PRESENCE_HOLD_MS_MAX = 65_000;

/** How long a shard keeps the links of an entry that it cannot reach. Milliseconds. */
export const LINK_AWAY_MS = 15_000;

/** Replacements of one home's box link within REPLACEMENT_WINDOW_MS after which the incumbent stays. Count. Spec L23. */
export const REPLACEMENTS_MAX = 3;

/** Milliseconds, 5 min. Spec L23. */
export const REPLACEMENT_WINDOW_MS = 300_000;

/** How long the incumbent then stays. Milliseconds, 10 min. Spec L23. */
export const INCUMBENT_STAYS_MS = 600_000;

/** How long a home's snapshot is kept after its box last sent one. Milliseconds, 24 h. Spec L34. */
export const NOW_KEPT_MS = 24 * 60 * 60_000;

/** How often a home that nothing uses is looked for and dropped. Milliseconds. */
export const HOME_SWEEP_INTERVAL_MS = 60_000;
