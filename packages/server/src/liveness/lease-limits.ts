// Times of leases.

/** How long a lease holds without a renewal. Milliseconds. Design: "Liveness". */
export const LEASE_MS = 15_000;

/** How often the counters of leases are looked at. Milliseconds: the error of a lease's age. */
export const LEASE_LOOK_INTERVAL_MS = 1_000;
