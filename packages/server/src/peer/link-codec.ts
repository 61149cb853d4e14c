// What the messages about links have in common, as heads and payloads, and back.
//
// Spec: docs/protocol/peer-link.md. `data` of frames is the payload: its bytes are not touched.
// I1  A word that this version does not know is read as the most careful one: an ending as `unknown`, a refusal as `busy`.

import { LINK_DATA_BYTES_MAX } from "@moor/protocol";
import { HOME_BUSY_WAIT_MS } from "../server-limits.ts";
import type {
  BoxAnswer,
  CommandEnding,
  HomeStatus,
  LinkEnding,
  LinkRefusal,
  LinkStatus,
  NowOutcome,
  Presence,
} from "./link-ports.ts";
import type { EntryId, NotOwner } from "./peer-link.ts";
import { encodePlacement, MalformedHead, read, type RawHead } from "./peer-messages.ts";
import type { PeerMessage } from "./transport/peer-network.ts";

/** A message whose payload is a text. */
export function withText(head: RawHead, text: string): PeerMessage {
  return { head, payload: Buffer.from(text, "utf8") };
}

export function encodePresence({ box, sinceMs }: Presence): RawHead {
  return { box, sinceMs };
}

export function readPresence(head: RawHead): Presence {
  const box = read.text(head, "box");
  if (box !== "online" && box !== "offline" && box !== "unknown") throw new MalformedHead("box");
  return { box, sinceMs: read.number(head, "sinceMs") };
}

/** Members of a refusal of a link. */
export function encodeLinkRefusal(refusal: LinkRefusal): RawHead {
  if (refusal.kind === "not-owner") return encodeNotOwner(refusal);
  const wait = "waitMs" in refusal ? { waitMs: refusal.waitMs } : {};
  return { why: refusal.kind, ...wait };
}

export function readLinkRefusal(head: RawHead): LinkRefusal {
  const why = read.text(head, "why");
  switch (why) {
    case "not-owner":
      return readNotOwner(head);
    case "superseded":
    case "revoked":
    case "home-gone":
      return { kind: why };
    case "incumbent-stays":
      return { kind: why, waitMs: read.number(head, "waitMs") };
    default:
      return { kind: "busy", waitMs: read.optionalNumber(head, "waitMs") ?? HOME_BUSY_WAIT_MS };
  }
}

/** Members of an ending of a link. */
export function encodeLinkEnding(ending: LinkEnding): RawHead {
  return ending.kind === "not-owner" ? encodeNotOwner(ending) : { why: ending.kind };
}

export function readLinkEnding(head: RawHead): LinkEnding {
  const why = read.text(head, "why");
  switch (why) {
    case "replaced":
    case "revoked":
    case "home-gone":
      return { kind: why };
    default:
      return readNotOwner(head);
  }
}

/** An ending of a command: its members beside `t` and what names it, and its payload. */
export function encodeCommandEnding(head: RawHead, ending: CommandEnding): PeerMessage {
  switch (ending.kind) {
    case "result":
      return withText({ ...head, ending: "result" }, ending.data);
    case "not-delivered":
      return { head: { ...head, ending: ending.kind, why: ending.why } };
    case "not-owner":
      return { head: { ...head, ending: ending.kind, ...encodeNotOwner(ending) } };
    case "unknown":
    case "expired":
      return { head: { ...head, ending: ending.kind } };
  }
}

export function readCommandEnding(message: PeerMessage): CommandEnding {
  const { head } = message;
  switch (read.text(head, "ending")) {
    case "result":
      return { kind: "result", data: read.payloadText(message, LINK_DATA_BYTES_MAX) };
    case "not-delivered":
      return { kind: "not-delivered", why: readWhyNotDelivered(head) };
    case "expired":
      return { kind: "expired" };
    case "not-owner":
      return readNotOwner(head);
    default:
      return { kind: "unknown" };
  }
}

/** What a box said of a command. */
export function encodeBoxAnswer(head: RawHead, answer: BoxAnswer): PeerMessage {
  if (answer.kind === "result") return withText({ ...head, answer: "result" }, answer.data);
  return { head: { ...head, answer: answer.outcome } };
}

export function readBoxAnswer(message: PeerMessage): BoxAnswer {
  const answer = read.text(message.head, "answer");
  if (answer === "result") return { kind: answer, data: read.payloadText(message, LINK_DATA_BYTES_MAX) };
  return {
    kind: "outcome",
    outcome: answer === "not_delivered" || answer === "expired" ? answer : "unknown",
  };
}

/** The reply about a snapshot. */
export function encodeNow(outcome: NowOutcome): PeerMessage {
  const t = "read-now-reply";
  switch (outcome.kind) {
    case "snapshot":
      return withText({ t, outcome: outcome.kind, ageMs: outcome.ageMs, etag: outcome.etag }, outcome.data);
    case "not-owner":
      return { head: { t, outcome: outcome.kind, ...encodeNotOwner(outcome) } };
    case "none":
    case "unavailable":
      return { head: { t, outcome: outcome.kind } };
  }
}

export function readNow(message: PeerMessage | undefined): NowOutcome {
  if (message === undefined) return { kind: "unavailable" };
  const { head } = message;
  switch (read.text(head, "outcome")) {
    case "snapshot": {
      const data = read.payloadText(message, LINK_DATA_BYTES_MAX);
      return { kind: "snapshot", data, ageMs: read.number(head, "ageMs"), etag: read.text(head, "etag") };
    }
    case "none":
      return { kind: "none" };
    case "not-owner":
      return readNotOwner(head);
    default:
      return { kind: "unavailable" };
  }
}

/** The reply about a home; without `status` it is not this shard's. */
export function encodeHomeStatus(status: HomeStatus | undefined): RawHead {
  return { t: "describe-home-reply", ...(status === undefined ? {} : { status }) };
}

export function readHomeStatus(message: PeerMessage | undefined): HomeStatus | undefined {
  if (message?.head["status"] === undefined) return undefined;
  const status = read.object(message.head, "status");
  return {
    presence: readPresence(read.object(status, "presence")),
    box: status["box"] === undefined ? undefined : readBoxStatus(read.object(status, "box")),
    apps: read.list(status, "apps").map((item) => readAppStatus(read.object({ item }, "item"))),
    duplicateIdentity: readDuplicate(status),
    commandsOpen: read.number(status, "commandsOpen"),
  };
}

function readBoxStatus(head: RawHead): HomeStatus["box"] {
  return { ...readLinkStatus(head), generation: read.number(head, "generation") };
}

function readAppStatus(head: RawHead): HomeStatus["apps"][number] {
  const app = read.optionalApp(head);
  if (app === undefined) throw new MalformedHead("app");
  return { ...readLinkStatus(head), app };
}

function readLinkStatus(head: RawHead): LinkStatus {
  const entry = read.text(head, "entry") as EntryId;
  return { entry, ageMs: read.number(head, "ageMs"), isFollowing: read.flag(head, "isFollowing") };
}

function readDuplicate(status: RawHead): HomeStatus["duplicateIdentity"] {
  if (status["duplicateIdentity"] === undefined) return undefined;
  const head = read.object(status, "duplicateIdentity");
  return { remainingMs: read.number(head, "remainingMs"), heldOff: read.number(head, "heldOff") };
}

function encodeNotOwner({ placement }: NotOwner): RawHead {
  const where = placement === undefined ? {} : { placement: encodePlacement(placement) };
  return { why: "not-owner", ...where };
}

function readNotOwner(head: RawHead): NotOwner {
  return { kind: "not-owner", placement: read.optionalPlacement(head) };
}

function readWhyNotDelivered(head: RawHead): "no-box" | "busy" | "box" {
  const why = read.text(head, "why");
  return why === "busy" || why === "box" ? why : "no-box";
}
