// A box's link: finds the shard that holds its home, proves who it is, acts on commands, tells events and its state.
//
// Spec: L9–L18, L20, L27–L32.
// I1  After `stop` has resolved nothing of it is left: no timer, socket, command or write.
// I2  It takes its settings at its creation. I3  The private key is used through `identity.sign` alone.

import {
  CAPABILITY_SHARD,
  encodeLinkFrame,
  LINK_PATH,
  LINK_VERSION,
  parseHomeId,
  type HomeId,
  type ServiceFrame,
} from "@moor/protocol";
import { ConfigError, sleep, type Runtime } from "@moor/runtime";
import { BoxCommands, type CommandHandler } from "./box-commands.ts";
import type { ClientLinkState } from "./client-link-state.ts";
import type { CommandLog } from "./command-log.ts";
import { LinkDriver, type LinkClientWarning } from "./link-driver.ts";
import { parseLinkEndpoint } from "./link-endpoint.ts";
import type { LinkRole } from "./link-session.ts";
import type { LinkDialler } from "./link-socket.ts";
import { verifyWithNode, type BoxIdentity } from "./node-ed25519.ts";
import type { VerifySignature } from "./ed25519.ts";
import { jsonTextOf } from "./raw-json.ts";
import type { LinkRecordStore } from "./record-store.ts";
import { ServiceKeys } from "./service-keys.ts";
import { tellListener } from "./tell-listener.ts";
import type { WakeSource } from "./wake-source.ts";
import { createWsDialler } from "./ws-dialler.ts";

/** What a box is told. */
export interface BoxLinkOptions {
  /** `wss://HOST[:PORT][/PREFIX]`; plain `ws` to this machine only. */
  readonly endpoint: string;
  /** Home id, `^[a-z0-9][a-z0-9_-]{0,63}$`. */
  readonly home: string;
  readonly identity: BoxIdentity;
  /** Raw Ed25519 keys of the service, base64url; at least one. */
  readonly serviceKeys: readonly string[];
  /** Capabilities it lists. Default `shard`; without that it follows no redirect (L6). */
  readonly caps?: readonly string[];
}

/** What a box runs on, and who hears of it. */
export interface BoxLinkPorts {
  readonly runtime: Runtime;
  /** Where the link record is kept (L12): createFileRecordStore. */
  readonly recordStore: LinkRecordStore;
  /** What it must remember of commands (L20): openFileCommandLog. Closed by its opener, after `stop`. */
  readonly commandLog: CommandLog;
  readonly onCommand: CommandHandler;
  readonly onState?: (state: ClientLinkState) => void;
  readonly onWarning?: (warning: LinkClientWarning) => void;
  /** Default: the `ws` library. */
  readonly dialler?: LinkDialler;
  /** Default: node:crypto. */
  readonly verify?: VerifySignature;
  /** Who notices a sleep; default: late timers alone. */
  readonly wakeSource?: WakeSource;
}

/** Time handlers get to end after their signal at a stop, milliseconds. */
const ABORT_WAIT_MS = 1_000;

/** A box's link. */
export interface BoxLink {
  /** Begins to link. Once only. */
  start(): void;
  /**
   * Sets the snapshot that the service keeps of the home (L31): told now, and after each reconnect.
   *
   * Throws RangeError for more than 4 KiB, TypeError for what JSON cannot say.
   */
  setNow(data: unknown): void;
  /**
   * Tells all apps of the home. False, and lost, if the link is not online or has too much to send already.
   *
   * Throws RangeError for more than 64 KiB, TypeError for what JSON cannot say.
   */
  sendEvent(data: unknown): boolean;
  /** Commands under way. */
  readonly inProgress: number;
  /** Belongs to no home from now on: ends the link and forgets the kept host (L18). */
  unlink(): void;
  /**
   * Belongs to another home from now on, as `unlink` and then linked anew (L18).
   *
   * @param commandLog the other home's
   * @throws ConfigError for what is no home id
   */
  relink(home: string, commandLog: CommandLog): void;
  /**
   * Lets commands under way finish, then ends the link and what is left of them.
   *
   * @param graceMs time for running commands, milliseconds, default 0
   */
  stop(graceMs?: number): Promise<void>;
}

/**
 * A box's link after these options.
 *
 * @throws ConfigError naming the flag of `moor box` that sets the option at fault
 */
export function createBoxLink(options: BoxLinkOptions, ports: BoxLinkPorts): BoxLink {
  return new DrivenBoxLink(options, ports);
}

class DrivenBoxLink implements BoxLink {
  readonly #runtime: Runtime;
  readonly #driver: LinkDriver;
  readonly #onCommand: CommandHandler;
  readonly #roleOf: (home: string) => LinkRole;
  /** The present home's last, those of homes before it. */
  readonly #everyCommands: BoxCommands[] = [];
  #commands: BoxCommands;
  #nowFrame: { readonly t: "now"; readonly data: string } | undefined;
  /** Counts links, so that an answer goes to the link that asked. */
  #linkCount = 0;

  constructor(options: BoxLinkOptions, ports: BoxLinkPorts) {
    const { runtime, commandLog: log, onCommand } = ports;
    this.#runtime = runtime;
    this.#onCommand = onCommand;
    this.#commands = this.#commandsOn(log);
    const caps = options.caps ?? [CAPABILITY_SHARD];
    this.#roleOf = (home) => boxRole(parseHome(home), options.identity, caps);
    this.#driver = new LinkDriver(
      {
        endpoint: parseLinkEndpoint("--endpoint", options.endpoint),
        path: LINK_PATH.box,
        caps,
        keys: new ServiceKeys("--service-key", options.serviceKeys),
        store: ports.recordStore,
      },
      this.#roleOf(options.home),
      {
        runtime,
        dialler: ports.dialler ?? createWsDialler(),
        verify: ports.verify ?? verifyWithNode,
        wakeSource: ports.wakeSource,
      },
      {
        onState: (state) => tellListener(() => ports.onState?.(state)),
        onWarning: (warning) => tellListener(() => ports.onWarning?.(warning)),
        onFrame: (frame) => this.#onFrame(frame),
        onOnline: () => {
          this.#linkCount += 1;
          this.#tellNow();
        },
        onOffline: () => {
          this.#linkCount += 1;
        },
      },
    );
  }

  get inProgress(): number {
    return this.#everyCommands.reduce((sum, { inProgress }) => sum + inProgress, 0);
  }

  start(): void {
    void this.#driver.start();
  }

  setNow(data: unknown): void {
    const frame = { t: "now", data: jsonTextOf(data) } as const;
    encodeLinkFrame(frame); // throws for one that is too large, online or not
    this.#nowFrame = frame;
    this.#tellNow();
  }

  sendEvent(data: unknown): boolean {
    const frame = { t: "event", data: jsonTextOf(data) } as const;
    encodeLinkFrame(frame);
    return this.#driver.send(frame);
  }

  unlink(): void {
    this.#driver.rehome(undefined);
  }

  relink(home: string, commandLog: CommandLog): void {
    const role = this.#roleOf(home);
    // What runs for the old home ends by itself, and its answers have no link to go to.
    this.#commands.refuse();
    this.#commands = this.#commandsOn(commandLog);
    this.#nowFrame = undefined;
    this.#driver.rehome(role);
  }

  async stop(graceMs = 0): Promise<void> {
    this.#commands.refuse();
    await this.#untilIdle(graceMs);
    for (const commands of this.#everyCommands) commands.abortAll();
    await this.#untilIdle(ABORT_WAIT_MS);
    await this.#driver.stop();
  }

  #commandsOn(log: CommandLog): BoxCommands {
    const commands = new BoxCommands({ runtime: this.#runtime, log, onCommand: this.#onCommand });
    this.#everyCommands.push(commands);
    return commands;
  }

  async #untilIdle(graceMs: number): Promise<void> {
    const grace = new AbortController();
    const idle = Promise.all(this.#everyCommands.map((commands) => commands.untilIdle()));
    await Promise.race([idle, sleep(this.#runtime, graceMs, grace.signal)]);
    grace.abort();
  }

  #onFrame(frame: ServiceFrame): void {
    if (frame.t !== "cmd") return;
    const link = this.#linkCount;
    this.#commands.take(frame, (answer) => {
      if (link === this.#linkCount) this.#driver.send(answer);
    });
  }

  #tellNow(): void {
    if (this.#nowFrame !== undefined) this.#driver.send(this.#nowFrame);
  }
}

function parseHome(text: string): HomeId {
  const home = parseHomeId(text);
  if (home === undefined) {
    // Not repeated: a token pasted in its place would be.
    const got = `a text of ${text.length} characters`;
    throw new ConfigError("--home", got, "1–64 characters of a–z, 0–9, _ and -, the first a letter or digit");
  }
  return home;
}

function boxRole(home: HomeId, identity: BoxIdentity, caps: readonly string[]): LinkRole {
  return {
    home,
    hello: (nonce) => ({ t: "hello", v: LINK_VERSION, home, caps, nonce }),
    sign: (message) => identity.sign(message),
  };
}
