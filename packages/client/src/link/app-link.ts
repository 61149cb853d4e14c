// An app's link, on whatever sockets and stores its platform has: commands with honest endings, events, presence, one-shots.
//
// Spec: L9–L20, L27–L34.
// I1  Nothing is sent again by itself: who wants an `unknown` command's result asks again with its id.
// I2  After `stop` has resolved nothing of it is left: no timer, socket or write.
// I3  The token goes into hello and one-shots, and nowhere else.

import {
  CAPABILITY_SHARD,
  encodeBase64url,
  LINK_PATH,
  LINK_VERSION,
  parseAppInstance,
  parseCommandId,
  parseLinkToken,
  type AppInstance,
  type HomeId,
  type PresenceFrame,
  type ServiceFrame,
} from "@moor/protocol";
import { ConfigError, invariant, type Runtime, type Secret } from "@moor/runtime/portable";
import { AppCommands, type CommandEnding } from "./app-commands.ts";
import type { ClientLinkState } from "./client-link-state.ts";
import type { VerifySignature } from "./ed25519.ts";
import { LinkDriver, type LinkClientWarning } from "./link-driver.ts";
import { parseLinkEndpoint } from "./link-endpoint.ts";
import type { LinkRole } from "./link-session.ts";
import type { LinkDialler } from "./link-socket.ts";
import type { OneShotHttp } from "./one-shot-http.ts";
import {
  commandData,
  lookNow,
  sendOnce,
  type NowEnding,
  type OnceEnding,
  type OneShotPorts,
} from "./one-shot.ts";
import { RawJson } from "./raw-json.ts";
import type { LinkRecordStore } from "./record-store.ts";
import { ServiceKeys } from "./service-keys.ts";
import { tellListener } from "./tell-listener.ts";
import type { WakeSource } from "./wake-source.ts";

/** What an app is told. */
export interface AppLinkOptions {
  /** `wss://HOST[:PORT][/PREFIX]` or the same with https; plain only to this machine. */
  readonly endpoint: string;
  /** App token, `<home>.<secret>`. */
  readonly token: Secret;
  /** This installation of the app: 1–64 of `[0-9A-Za-z_-]`, the same over its runs. */
  readonly app: string;
  /** Raw Ed25519 keys of the service, base64url; at least one. */
  readonly serviceKeys: readonly string[];
  /** Capabilities it lists. Default `shard`; without that it follows no redirect (L6). */
  readonly caps?: readonly string[];
}

/** Whether the home's box is linked, as of now. */
export interface BoxPresence {
  readonly box: "online" | "offline" | "unknown";
  /** For how long it had been so when the service said it, milliseconds. */
  readonly sinceMs: number;
}

/** Who hears of an app's link. */
export interface AppLinkListeners {
  readonly onEvent?: (data: RawJson) => void;
  readonly onPresence?: (presence: BoxPresence) => void;
  readonly onState?: (state: ClientLinkState) => void;
  readonly onWarning?: (warning: LinkClientWarning) => void;
}

/** What the platform gives. */
export interface AppLinkPorts {
  readonly runtime: Runtime;
  readonly dialler: LinkDialler;
  readonly verify: VerifySignature;
  readonly http: OneShotHttp;
  readonly recordStore: LinkRecordStore;
  readonly wakeSource?: WakeSource | undefined;
}

/** A command to send. */
export interface AppCommand {
  /** 1–64 of `[0-9A-Za-z_-]`; default: a new one. Choose it yourself to be able to ask again. */
  readonly id?: string;
  /** Milliseconds in which it must have reached the box. */
  readonly ttlMs: number;
  /** Any JSON value, or a RawJson; at most 64 KiB. */
  readonly data: unknown;
  /** Called when the command was written to the box's link: from then on it ends as `result` or `unknown`. */
  readonly onAcked?: () => void;
}

/** An app's link. */
export interface AppLink {
  /** Begins to link. Once only; one-shots need no link. */
  start(): void;
  /**
   * Sends a command over the link: `not_delivered` at once while there is none.
   *
   * Throws RangeError for an id, ttl or data out of bounds, TypeError for what JSON cannot say.
   */
  send(command: AppCommand): Promise<CommandEnding>;
  /** Sends a command as a one-shot (L33). Throws like `send`. */
  once(command: Omit<AppCommand, "onAcked">): Promise<OnceEnding>;
  /** Looks at the home's snapshot with an extension token (L34). */
  now(extensionToken: Secret, ifNoneMatch?: string): Promise<NowEnding>;
  /** Belongs to another home, or to none, from now on: links with this token and forgets the kept host (L18). A new token of
   *  the same home is for the next dial and the next one-shot. Throws ConfigError for what is no token. */
  setToken(token: Secret | undefined): void;
  stop(): Promise<void>;
}

/**
 * An app's link on these ports.
 *
 * @throws ConfigError naming the flag of `moor app` that sets the option at fault
 */
export function createAppLinkOn(
  ports: AppLinkPorts,
  options: AppLinkOptions,
  listeners: AppLinkListeners = {},
): AppLink {
  return new DrivenAppLink(ports, options, listeners);
}

const ID_BYTES = 16;

class DrivenAppLink implements AppLink {
  readonly #runtime: Runtime;
  readonly #http: OneShotHttp;
  readonly #driver: LinkDriver;
  readonly #commands: AppCommands;
  readonly #oneShots: OneShotPorts;
  readonly #caps: readonly string[];
  readonly #app: AppInstance;
  /** Undefined: of no home. */
  #token: Secret | undefined;

  constructor(ports: AppLinkPorts, options: AppLinkOptions, listeners: AppLinkListeners) {
    const { runtime, http } = ports;
    const endpoint = parseLinkEndpoint("--endpoint", options.endpoint);
    this.#runtime = runtime;
    this.#http = http;
    this.#caps = options.caps ?? [CAPABILITY_SHARD];
    this.#app = parseApp(options.app);
    this.#token = options.token;
    this.#commands = new AppCommands(runtime, (frame) => this.#driver.send(frame));
    this.#driver = new LinkDriver(
      {
        endpoint,
        path: LINK_PATH.app,
        caps: this.#caps,
        keys: new ServiceKeys("--service-key", options.serviceKeys),
        store: ports.recordStore,
      },
      this.#roleOf(options.token),
      ports,
      {
        onState: (state) => tellListener(() => listeners.onState?.(state)),
        onWarning: (warning) => tellListener(() => listeners.onWarning?.(warning)),
        onFrame: (frame) => this.#onFrame(frame, listeners),
        onOnline: () => {},
        onOffline: () => this.#commands.lose(),
      },
    );
    this.#oneShots = { runtime, http, endpoint, liveHost: () => this.#driver.liveHost };
  }

  start(): void {
    void this.#driver.start();
  }

  send(command: AppCommand): Promise<CommandEnding> {
    const { id = this.#newId(), ttlMs, data, onAcked } = command;
    const text = commandData({ id, ttlMs, data });
    const commandId = parseCommandId(id);
    invariant(commandId !== undefined, "commandData checks the id");
    return this.#commands.send({ t: "cmd", id: commandId, ttl_ms: ttlMs, data: text }, onAcked);
  }

  once({ id = this.#newId(), ttlMs, data }: Omit<AppCommand, "onAcked">): Promise<OnceEnding> {
    const token = this.#token;
    if (token === undefined) return Promise.resolve({ kind: "refused", why: "auth" });
    return sendOnce(this.#oneShots, token, { id, ttlMs, data });
  }

  now(extensionToken: Secret, ifNoneMatch?: string): Promise<NowEnding> {
    return lookNow(this.#oneShots, extensionToken, ifNoneMatch);
  }

  setToken(token: Secret | undefined): void {
    const role = token === undefined ? undefined : this.#roleOf(token);
    this.#token = token;
    this.#driver.rehome(role);
  }

  async stop(): Promise<void> {
    await this.#driver.stop();
    await this.#http.close();
  }

  #roleOf(token: Secret): LinkRole {
    const home = parseHome(token);
    const hello = { t: "hello", v: LINK_VERSION, home, caps: this.#caps, app: this.#app } as const;
    return { home, hello: (nonce) => ({ ...hello, nonce, token: token.reveal() }) };
  }

  #newId(): string {
    return encodeBase64url(this.#runtime.randomBytes(ID_BYTES));
  }

  #onFrame(frame: ServiceFrame, { onEvent, onPresence }: AppLinkListeners): void {
    switch (frame.t) {
      case "ack":
      case "result":
      case "outcome":
        return this.#commands.take(frame);
      case "event":
        return tellListener(() => onEvent?.(new RawJson(frame.data)));
      case "presence":
        return tellListener(() => onPresence?.(presenceOf(frame)));
      case "challenge":
      case "hello_ok":
      case "cmd":
      case "ping":
      case "pong":
        return; // a box's, or the handshake's
    }
  }
}

function presenceOf({ box, since_ms: sinceMs }: PresenceFrame): BoxPresence {
  return { box, sinceMs };
}

function parseHome(token: Secret): HomeId {
  const parsed = parseLinkToken(token.reveal());
  if (parsed === undefined) throw new ConfigError("--token-file", "no such token", "<home>.<secret>");
  return parsed.home;
}

function parseApp(text: string): AppInstance {
  const app = parseAppInstance(text);
  if (app !== undefined) return app;
  const got = `a text of ${text.length} characters`;
  throw new ConfigError("--app", got, "1–64 characters of 0–9, A–Z, a–z, _ and -");
}
