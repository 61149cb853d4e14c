// What the ending of a socket means for its link, before and after hello_ok.
//
// Spec: L11, L15, L16, L27, L28.   Pure.

import { CLOSE_CODE, troubleOfClose, troubleOfUpgrade, type LinkTrouble } from "@moor/protocol";
import type { SocketEnd } from "./link-socket.ts";

/** How a session ended, in the words of the follower's events. */
export type SessionEnd =
  | { readonly kind: "dial-failed"; readonly cause: LinkTrouble }
  | { readonly kind: "redirected" | "restarting"; readonly reason: string }
  | {
      readonly kind: "lost";
      readonly by: "peer" | "client";
      readonly closeCode?: number;
      readonly cause?: LinkTrouble;
    };

/** What an ending before hello_ok is. Spec L11, L15, L16. */
export function dialEnd(end: SocketEnd): SessionEnd {
  switch (end.kind) {
    case "no-upgrade":
      return { kind: "dial-failed", cause: troubleOfUpgrade(end.status) };
    case "fault":
      return { kind: "dial-failed", cause: end.trouble };
    case "closed":
      if (end.code === CLOSE_CODE.wrongShard) return { kind: "redirected", reason: end.reason };
      if (end.code === CLOSE_CODE.restart) return { kind: "restarting", reason: end.reason };
      return { kind: "dial-failed", cause: troubleOfClose(end.code, "closed") };
  }
}

/** What an ending after hello_ok is. Spec L15, L16, L28. */
export function linkEnd(end: SocketEnd): SessionEnd {
  switch (end.kind) {
    case "no-upgrade":
      return { kind: "lost", by: "peer" };
    case "fault":
      // What this side could not read it has closed itself; anything else is a connection that broke.
      return end.trouble === "bad-frame"
        ? { kind: "lost", by: "client", cause: "bad-frame" }
        : { kind: "lost", by: "peer" };
    case "closed":
      if (end.code === CLOSE_CODE.wrongShard) return { kind: "redirected", reason: end.reason };
      if (end.code === CLOSE_CODE.restart) return { kind: "restarting", reason: end.reason };
      return { kind: "lost", by: "peer", closeCode: end.code };
  }
}
