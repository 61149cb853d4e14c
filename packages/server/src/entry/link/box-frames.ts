// What a live box says, and what is written to it.
//
// Spec: L20, L31. What a box says while its owner is out of reach arrives once that is back, events apart; a result that
// is lost all the same is asked for again by command id.

import { encodeLinkFrame, type AppInstance, type BoxFrame } from "@moor/protocol";
import type { DeliveredCommand, HomeShardPort } from "../../peer/link-ports.ts";
import type { LinkSession, VerifiedLink } from "./link-session.ts";

/** What a box is told a one-shot comes from: it has no app instance. Spec L31, L33. */
export const ONCE_APP = "once" as AppInstance;

/** Passes a box's frame on to its owner. */
export function handleBoxFrame({ linkId }: LinkSession, link: VerifiedLink, frame: BoxFrame): void {
  const { port, awayPort, home } = link;
  const surePort = port ?? awayPort;
  switch (frame.t) {
    case "result":
      return surePort?.boxAnswered(home, linkId, frame.id, { kind: "result", data: frame.data });
    case "outcome":
      return surePort?.boxAnswered(home, linkId, frame.id, { kind: "outcome", outcome: frame.outcome });
    case "event":
      return port?.boxEvent(home, linkId, frame.data);
    case "now":
      return surePort?.boxNow(home, linkId, frame.data);
    case "hello":
    case "proof":
    case "ping":
    case "pong":
      return; // The session's.
  }
}

/** Writes a command to its box, and tells the shard whether it stands in the socket. */
export function writeCommand(
  session: LinkSession | undefined,
  command: DeliveredCommand,
  shard: HomeShardPort,
): void {
  const { linkId, home, id, app = ONCE_APP, remainingMs, data } = command;
  const ttlMs = Math.max(0, Math.round(remainingMs));
  const isBox = session?.role === "box" && session.link?.home === home;
  const isWritten = isBox && session.send(encodeLinkFrame({ t: "cmd", id, ttl_ms: ttlMs, data, app }));
  shard.commandSettled(home, linkId, id, isWritten ? "written" : "not-written");
}
