// Homes with enrolled boxes, put straight into a directory: a fleet of thousands does not go through the doors of one
// node, which let a few enrolments a minute in.
//
// Spec: L7, L28. I1  Homes and keys come about by the directory's own operations; only the doors are left out.

import { generateKeyPairSync } from "node:crypto";
import { createNodeRuntime, createSilentLogger } from "@moor/runtime";
import { openDirectory, readNodeSecret, type Directory, type DirectoryLocation } from "@moor/server";

/** A home with the private half of its box's key, and a token for apps. */
export interface PlantedHome {
  readonly home: string;
  /** Seed of the Ed25519 key: 32 bytes, base64url. */
  readonly seed: string;
  /** `<home>.moor_app_…`; empty unless asked for. */
  readonly appToken: string;
}

/** What was planted, and what clients must know to believe the service. */
export interface PlantedHomes {
  readonly homes: readonly PlantedHome[];
  /** Raw service keys, base64url. */
  readonly serviceKeys: readonly string[];
}

export interface PlantOptions {
  readonly location: DirectoryLocation;
  /** File of the node secret of the residency. */
  readonly nodeSecretFile: string;
  readonly count: number;
  /** Whether each home gets an app token. Default false. */
  readonly hasAppTokens?: boolean;
}

/** Homes that are made at a time: the directory commits them together. */
const AT_A_TIME = 500;

/**
 * Makes homes in a directory that has a default shard already. An embedded one must not be in use: its node is stopped.
 */
export async function plantHomes(options: PlantOptions): Promise<PlantedHomes> {
  const { location, nodeSecretFile, count, hasAppTokens = false } = options;
  const { directory } = await openDirectory(location, {
    runtime: createNodeRuntime(),
    logger: createSilentLogger(),
    nodeSecret: readNodeSecret(nodeSecretFile),
  });
  try {
    const homes: PlantedHome[] = [];
    while (homes.length < count) {
      const batch = Math.min(AT_A_TIME, count - homes.length);
      homes.push(...(await Promise.all(Array.from({ length: batch }, () => plant(directory, hasAppTokens)))));
    }
    const keys = await directory.listServiceKeys();
    return { homes, serviceKeys: keys.map(({ publicKey }) => publicKey) };
  } finally {
    await directory.close();
  }
}

async function plant(directory: Directory, hasAppToken: boolean): Promise<PlantedHome> {
  const { home } = await directory.createHome({});
  const { d: seed = "", x: publicKey = "" } = generateKeyPairSync("ed25519").privateKey.export({
    format: "jwk",
  });
  const { code } = await directory.createEnrolment(home.id);
  const { kind } = await directory.redeemEnrolment(code.reveal(), publicKey);
  if (kind !== "ok") throw new Error(`the enrolment of ${home.id} was refused`);
  if (!hasAppToken) return { home: home.id, seed, appToken: "" };
  const { token } = await directory.createHomeToken({ home: home.id, kind: "app" });
  return { home: home.id, seed, appToken: token.reveal() };
}
