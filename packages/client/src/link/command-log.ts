// What a box must remember of commands to act on each at most once: the port.
//
// Spec: L20.
// I1  `begin` resolves with "begun" only when the id survives a power cut.
// I2  An id that was begun is known for at least 24 h and 10,000 further ids, over sessions and restarts.

/** What is known of an id. */
export type LoggedCommand =
  | { readonly kind: "new" }
  /** It was begun; how it ended is not known, or not any more. */
  | { readonly kind: "begun" }
  /** Its result, as the JSON text it was. */
  | { readonly kind: "ended"; readonly resultJson: string }
  /** The log cannot be read now. */
  | { readonly kind: "unreadable" };

/** A durable log of one home's commands. Promises never reject. */
export interface CommandLog {
  look(id: string): Promise<LoggedCommand>;
  /** Makes the id durable before anything is done for it. `unwritable`: do not act. */
  begin(id: string): Promise<"begun" | "unwritable">;
  /** Makes the result durable. `unwritable`: after a restart the outcome will be unknown. */
  end(id: string, resultJson: string): Promise<"ended" | "unwritable">;
  /** Writes what waits and lets go of the log. */
  close(): Promise<void>;
}
