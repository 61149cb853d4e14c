// The members of each kind of frame, by sender: which it has, which may be absent, and what they must be.
// Spec: L28, L30–L32.   Pure.
//
// I1  A known member of the wrong form spoils its frame (4400, or a failed dial) before any signature is made or checked.

import type { CommandOutcome, LinkFrame, LinkFramesFrom } from "./link-frame-types.ts";
import {
  LINK_VERSION,
  parseAppInstance,
  parseCommandId,
  parseGeneration,
  parseHomeId,
  parseNonce,
  parseServiceKeyId,
  parseSignature,
  type LinkSender,
} from "./link-names.ts";

/** How one member is read from its JSON value. */
export interface MemberReader<Value = unknown> {
  /** `undefined` for a value of the wrong form. Given no objects, and no arrays but of texts. */
  readonly read: (value: unknown) => Value | undefined;
  readonly isOptional: boolean;
  /** The member is its JSON text itself, whatever it says. */
  readonly isRaw: boolean;
}

/** Members of one kind of frame, by name. */
export type FrameMembers = Readonly<Record<string, MemberReader>>;

/** The members a frame's type names: all of them, and no others. */
type MembersOf<Frame> = {
  readonly [Name in Exclude<keyof Frame, "t">]-?: MemberReader<Exclude<Frame[Name], undefined>>;
};

type KindsOf<Frame extends LinkFrame> = {
  readonly [Kind in Frame["t"]]: MembersOf<Extract<Frame, { readonly t: Kind }>>;
};

function need<Value>(read: (value: unknown) => Value | undefined): MemberReader<Value> {
  return { read, isOptional: false, isRaw: false };
}

function may<Value>(read: (value: unknown) => Value | undefined): MemberReader<Value> {
  return { read, isOptional: true, isRaw: false };
}

/** A reader of texts that one of the parsers of link-names accepts. */
function textBy<Value>(parse: (text: string) => Value | undefined): (value: unknown) => Value | undefined {
  return (value) => (typeof value === "string" ? parse(value) : undefined);
}

const DATA: MemberReader<string> = { read: () => undefined, isOptional: false, isRaw: true };

const id = need(textBy(parseCommandId));
const nonce = need(textBy(parseNonce));
const result = { id, data: DATA };
const outcome = { id, outcome: need(readOutcome) };

const hello = {
  v: need((value) => (value === LINK_VERSION ? LINK_VERSION : undefined)),
  home: need(textBy(parseHomeId)),
  caps: need(readNames),
  nonce,
};

/** What each side sends, by kind. */
export const FRAMES_FROM: { readonly [From in LinkSender]: KindsOf<LinkFramesFrom[From]> } = {
  box: {
    hello,
    proof: { sig: need(textBy(parseSignature)) },
    result,
    outcome,
    event: { data: DATA },
    now: { data: DATA },
    ping: {},
    pong: {},
  },
  app: {
    hello: { ...hello, token: need(textBy((text) => text)), app: need(textBy(parseAppInstance)) },
    cmd: { id, ttl_ms: need(readWholeMs), data: DATA },
    ping: {},
    pong: {},
  },
  service: {
    challenge: { nonce },
    hello_ok: {
      host: need(textBy(readHostText)),
      home: need(textBy(parseHomeId)),
      generation: need(textBy(parseGeneration)),
      key: need(textBy(parseServiceKeyId)),
      sig: need(textBy(parseSignature)),
      ping_ms: may(readMs),
      spread_ms: may(readMs),
      next_key: may(textBy(parseNonce)),
    },
    cmd: { id, ttl_ms: need(readWholeMs), data: DATA, app: need(textBy(parseAppInstance)) },
    ack: { id },
    result,
    outcome,
    event: { data: DATA },
    presence: { box: need(readPresence), since_ms: need(readMs) },
    ping: {},
    pong: {},
  },
};

/** The order in which members are written. */
export const MEMBER_ORDER: Readonly<Record<LinkFrame["t"], readonly string[]>> = {
  hello: ["v", "home", "caps", "nonce", "token", "app"],
  challenge: ["nonce"],
  proof: ["sig"],
  hello_ok: ["host", "home", "generation", "key", "sig", "ping_ms", "spread_ms", "next_key"],
  cmd: ["id", "ttl_ms", "data", "app"],
  ack: ["id"],
  result: ["id", "data"],
  outcome: ["id", "outcome"],
  event: ["data"],
  now: ["data"],
  presence: ["box", "since_ms"],
  ping: [],
  pong: [],
};

function readNames(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? (value as readonly string[]) : undefined;
}

/** Any host name or address: whether it is the one dialled is the client's to compare. */
function readHostText(text: string): string | undefined {
  return /^[\x21-\x7e]{1,123}$/.test(text) ? text : undefined;
}

function readMs(value: unknown): number | undefined {
  return Number.isFinite(value) && (value as number) >= 0 ? (value as number) : undefined;
}

function readWholeMs(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? readMs(value) : undefined;
}

function readOutcome(value: unknown): CommandOutcome | undefined {
  return value === "unknown" || value === "not_delivered" || value === "expired" ? value : undefined;
}

function readPresence(value: unknown): "online" | "offline" | "unknown" | undefined {
  return value === "online" || value === "offline" || value === "unknown" ? value : undefined;
}
