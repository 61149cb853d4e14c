// What the directory keeps of the link plane: homes, the apps seen at them, enrolment codes, service keys.
//
// Spec: L7, L22, L28, L29. Design: "Directory, changes, replicas".
// I1  No record holds a private key but ServiceSigningKey, which never leaves the node, and none the text of a code.

import type { KeyObject } from "node:crypto";
import { parseHomeId, type HomeId, type TunnelId } from "@moor/protocol";
import type { Placement } from "./records.ts";

/** Reads the id of a home that can be a tenant beside tunnels: a home's id that does not look like a tunnel's. */
export function parseHomeTenant(text: string): HomeId | undefined {
  return text.startsWith("tunnel_") ? undefined : parseHomeId(text);
}

/** A home as the directory knows it. */
export interface HomeRecord {
  readonly id: HomeId;
  /** For people; may be empty. */
  readonly label: string;
  /** The box's Ed25519 public key: 32 bytes raw, base64url. Null until a box is enrolled. Spec L28. */
  readonly boxKey: string | null;
  /** Whether the last hello of this key's box listed `shard`. Null until its first one. Spec L22. */
  readonly boxHasShard: boolean | null;
  /** About when that hello was, within an hour. Milliseconds since 1970. */
  readonly boxSeenAtMs: number | null;
  /** The tunnel that `/v1/mcp/{home}` leads to. Spec L26. */
  readonly tunnel: TunnelId | null;
  readonly createdAtMs: number;
  readonly placement: Placement;
}

/** An app instance that said hello to a home. Spec L22, L30. */
export interface HomeAppRecord {
  /** Instance id, 1–64 of `[0-9A-Za-z_-]`. */
  readonly app: string;
  /** Whether its last hello listed `shard`. */
  readonly hasShard: boolean;
  /** About when that was, within an hour. Milliseconds since 1970. */
  readonly lastSeenAtMs: number;
}

/** A hello to be noted. */
export interface HomeSighting {
  readonly home: HomeId;
  /** The app's instance id; null for the box. */
  readonly app: string | null;
  /** Whether the hello listed `shard`. */
  readonly hasShard: boolean;
  /** What the box proved itself with: that of a box which was replaced meanwhile is not noted. Absent: whichever box. */
  readonly boxKey?: string | undefined;
}

/** Why a home may not leave the default shard. Spec L22. */
export type MoveBlocker =
  /** A box that never said hello (`hasShard` null), or whose last hello did not list `shard`. */
  | { readonly kind: "box"; readonly hasShard: boolean | null; readonly lastSeenAtMs: number | null }
  /** An app without `shard`, seen in the last 30 days. */
  | { readonly kind: "app"; readonly app: string; readonly lastSeenAtMs: number };

/** A tenant that a batch of moves left where it is. */
export interface BlockedMove {
  readonly tenant: string;
  readonly blockers: readonly MoveBlocker[];
}

/** The key that signs `hello_ok`, open: for this node's own use. Spec L29. */
export interface ServiceSigningKey {
  /** First 16 characters of base64url(SHA-256(raw public key)). Spec L28. */
  readonly id: string;
  /** 32 bytes raw, base64url. */
  readonly publicKey: string;
  /** Ed25519. */
  readonly privateKey: KeyObject;
}

/** The service keys as a node uses them. */
export interface ServiceKeys {
  readonly active: ServiceSigningKey;
  /** The public key announced as `next_key`: 32 bytes raw, base64url. */
  readonly next?: string;
}

/** Every state of a service key. */
export const SERVICE_KEY_STATES = ["active", "next"] as const;
/** `active` signs; `next` is announced, and signs once the active one is retired. */
export type ServiceKeyState = (typeof SERVICE_KEY_STATES)[number];

/** A service key as it may be shown. */
export interface ServiceKeyRecord {
  readonly id: string;
  /** 32 bytes raw, base64url: what clients are built or configured with. */
  readonly publicKey: string;
  readonly state: ServiceKeyState;
  readonly createdAtMs: number;
  /** When it came into its present state. */
  readonly stateSinceMs: number;
  readonly createdBy: string;
}

/** What redeeming an enrolment code came to. */
export type EnrolmentOutcome =
  /** `serviceKeys`: raw public keys, base64url, the signing one first. */
  | { readonly kind: "ok"; readonly home: HomeId; readonly serviceKeys: readonly string[] }
  /** Unknown, wrong, used, ended or expired: nobody is told which. */
  | { readonly kind: "refused" };
