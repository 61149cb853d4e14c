// What a live app says: commands. What it hears of each: ack, then its one ending.
//
// Spec: L20, L31.
// I1  A command that is open already is not submitted again by the same link: it has one ending.
// I2  Beyond a link's bound a command is `not_delivered`: it never left this entry.

import { encodeLinkFrame, type AppFrame, type CommandFrame, type CommandId } from "@moor/protocol";
import type { SubmissionId } from "../../peer/link-ports.ts";
import type { CommandEnd, CommandTable } from "./link-commands.ts";
import { COMMAND_TTL_MS_MAX, COMMANDS_PER_LINK_MAX } from "./link-limits.ts";
import type { LinkSession, VerifiedLink } from "./link-session.ts";

/** Stands for a submission while it is under way. */
const UNDER_WAY = "" as SubmissionId;

/** Takes an app's frame. */
export function handleAppFrame(
  table: CommandTable,
  session: LinkSession,
  link: VerifiedLink,
  frame: AppFrame,
): void {
  if (frame.t === "cmd") submitCommand(table, session, link, frame);
}

function submitCommand(
  table: CommandTable,
  session: LinkSession,
  link: VerifiedLink,
  { id, ttl_ms: ttlMs, data }: CommandFrame,
): void {
  link.commands ??= new Map();
  const { home, app, commands } = link;
  if (commands.has(id)) return;
  if (commands.size >= COMMANDS_PER_LINK_MAX) {
    session.send(encodeLinkFrame({ t: "outcome", id, outcome: "not_delivered" }));
    return;
  }
  commands.set(id, UNDER_WAY);
  const submission = table.submit({
    home,
    id,
    app,
    ttlMs: Math.min(ttlMs, COMMAND_TTL_MS_MAX),
    data,
    waiter: {
      written: () => void session.send(encodeLinkFrame({ t: "ack", id })),
      ended: (end) => {
        commands.delete(id);
        session.send(endText(id, end));
      },
    },
  });
  if (commands.has(id)) commands.set(id, submission);
}

function endText(id: CommandId, end: CommandEnd): string {
  switch (end.kind) {
    case "result":
      return encodeLinkFrame({ t: "result", id, data: end.data });
    case "unknown":
      return encodeLinkFrame({ t: "outcome", id, outcome: "unknown" });
    case "not-delivered":
      return encodeLinkFrame({ t: "outcome", id, outcome: "not_delivered" });
    case "expired":
      return encodeLinkFrame({ t: "outcome", id, outcome: "expired" });
  }
}
