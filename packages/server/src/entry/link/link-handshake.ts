// From hello to the owner's word: who is it, where does its home live, does the owner take it.
//
// Spec: L7, L21, L23, L27–L30.
// I1  An app's token is judged before anything else: an unknown home and a bad token end alike (L7).
// I2  A box of an unknown home goes the way of a known one: redirected or challenged by where a keyed hash points, its
//     proof checked, and only then refused (L28).
// I3  4421 and 4503 go out after hello and before hello_ok; nobody is sent to the host dialled (L21).
// I4  A shard that says it is not the owner is followed at most OWNER_HOPS_MAX times; where it and this node disagree,
//     this node looks for newer news once, then says 4503 (L21).

import {
  CAPABILITY_SHARD,
  CLOSE_CODE,
  encodeLinkFrame,
  linkProofBytes,
  type Base64url32,
} from "@moor/protocol";
import type { LinkRefusal } from "../../peer/link-ports.ts";
import { OWNER_HOPS_MAX } from "../../server-limits.ts";
import type { LinkContext } from "./link-context.ts";
import { CATCH_UP_WAIT_MS, OWNER_WAIT_MS } from "./link-limits.ts";
import { routeHome, type LinkRoute } from "./link-route.ts";
import type { HelloOf, LinkSession, VerifiedLink } from "./link-session.ts";
import { parsePublicKey } from "./proof-verifier.ts";
import type { RateBuckets } from "./rate-buckets.ts";
import type { SignatureQueue } from "./signature-queue.ts";

/** What all handshakes of an entry share. */
export interface HandshakeParts {
  readonly context: LinkContext;
  readonly signatures: SignatureQueue;
  readonly homeAllowances: RateBuckets<string>;
  /** Raw key that stands for the one a home does not have; nobody holds its private half. */
  readonly nobodysKey: string;
  /** Registers the link with its owner; false while that cannot be reached. */
  readonly register: (session: LinkSession, link: VerifiedLink) => boolean;
}

type Stage =
  | { readonly kind: "challenged"; readonly nonce: Base64url32 }
  | { readonly kind: "checking" }
  /** Waits for the owner's node to come within reach. */
  | { readonly kind: "parked"; readonly untilMs: number }
  | { readonly kind: "registering" }
  | { readonly kind: "catching-up" }
  | { readonly kind: "over" };

export class LinkHandshake {
  readonly #parts: HandshakeParts;
  readonly #session: LinkSession;
  readonly #hello: HelloOf;
  readonly link: VerifiedLink;
  #stage: Stage = { kind: "catching-up" };
  #hasCaughtUp = false;

  constructor(parts: HandshakeParts, session: LinkSession, hello: HelloOf) {
    this.#parts = parts;
    this.#session = session;
    this.#hello = hello;
    this.link = {
      home: hello.home,
      app: "app" in hello ? hello.app : undefined,
      isFollowing: hello.caps.includes(CAPABILITY_SHARD),
      credential: this.#credential(),
      port: undefined,
      awayPort: undefined,
      registeredBy: 0,
      generation: undefined,
      hops: 0,
      commands: undefined,
      onlineAtMs: 0,
    };
  }

  start(): void {
    if (this.#session.role === "app") {
      if (this.link.credential === "") return this.#session.close(CLOSE_CODE.auth, "");
      if (this.#isHomeBusy()) return;
      return this.#proceed();
    }
    if (!this.#isServedHere()) return;
    const { context } = this.#parts;
    const nonce = Buffer.from(context.runtime.randomBytes(32)).toString("base64url") as Base64url32;
    this.#stage = { kind: "challenged", nonce };
    this.#session.send(encodeLinkFrame({ t: "challenge", nonce }));
  }

  /** A box's proof. */
  proofArrived(signature: string): void {
    if (this.#stage.kind !== "challenged") return this.#session.close(CLOSE_CODE.protocol, "proof-unasked");
    const { context, signatures } = this.#parts;
    const { dialled, address } = this.#session;
    const { home, nonce: clientNonce } = this.#hello;
    const bytes = linkProofBytes({ host: dialled.host, home, clientNonce, serviceNonce: this.#stage.nonce });
    const key = parsePublicKey(this.link.credential);
    this.#stage = { kind: "checking" };
    const isTaken = signatures.submit({
      address,
      start: (answer) => (key === undefined ? answer(false) : context.verify(bytes, signature, key, answer)),
      done: (isValid) => this.#checked(isValid),
    });
    if (!isTaken) this.#session.close(CLOSE_CODE.busy, "");
  }

  /** The owner took the link. */
  accepted(generation: number | undefined): void {
    const { context } = this.#parts;
    if (this.#stage.kind !== "registering") return;
    if (!this.#isKeyCurrent()) return this.#session.close(CLOSE_CODE.auth, "");
    this.link.generation = generation;
    this.link.hops = 0;
    const helloOk = context.signer.helloOk({
      host: this.#session.dialled.host,
      home: this.link.home,
      clientNonce: this.#hello.nonce,
      generation: generation ?? 0,
      pingMs: context.pingMs,
      spreadMs: context.spreadMs(),
    });
    if (helloOk === undefined) return this.#wait();
    this.#stage = { kind: "over" };
    this.#session.goOnline(helloOk, this.link);
  }

  /** The owner does not take it, or is not the owner. */
  refused(refusal: LinkRefusal): void {
    if (this.#stage.kind !== "registering") return;
    if (refusal.kind !== "not-owner") return closeRefused(this.#session, refusal);
    const asked = this.link.port?.shard;
    this.link.port = undefined;
    this.link.hops += 1;
    const { placements } = this.#parts.context;
    if (refusal.placement !== undefined) placements.learn(this.link.home, refusal.placement);
    if (this.link.hops > OWNER_HOPS_MAX) return this.#wait();
    if (placements.best(this.link.home)?.shard !== asked) return this.#proceed();
    return this.#catchUp();
  }

  /** Its home's shard or placement changed: what waits for an owner, or for its word, goes to the one there is now. */
  nudge(): void {
    if (this.#stage.kind === "parked" || this.#stage.kind === "registering") this.#proceed();
  }

  /** Does what is due; returns when to be asked again. Monotonic milliseconds. */
  wake(nowMs: number): number {
    if (this.#stage.kind !== "parked") return Number.POSITIVE_INFINITY;
    if (nowMs < this.#stage.untilMs) return this.#stage.untilMs;
    this.#wait();
    return nowMs;
  }

  /** Its time is over: whose turn it was decides how it ends. */
  ranOut(): undefined {
    if (this.#stage.kind === "challenged") this.#session.close(CLOSE_CODE.helloTimeout, "proof");
    else this.#wait();
  }

  /** The link ends in its handshake. */
  abandon(): void {
    this.#stage = { kind: "over" };
    const { port, awayPort, home } = this.link;
    (port ?? awayPort)?.withdrawLink(home, this.#session.linkId);
    this.link.port = undefined;
    this.link.awayPort = undefined;
  }

  #checked(isValid: boolean): void {
    if (this.#stage.kind !== "checking") return;
    if (!isValid || !this.#isKeyCurrent()) return this.#session.close(CLOSE_CODE.auth, "");
    if (!this.#isHomeBusy()) this.#proceed();
  }

  /** Whether a box's key still counts: it may have been replaced since hello. Apps are closed as their token is revoked. */
  #isKeyCurrent(): boolean {
    const { home, credential } = this.link;
    return this.#session.role === "app" || this.#parts.context.identities.boxKey(home) === credential;
  }

  /** To the owner, wherever it is now. */
  #proceed(): void {
    if (!this.#isServedHere()) return;
    const { context, register } = this.#parts;
    this.#stage = { kind: "registering" };
    if (register(this.#session, this.link)) return;
    const untilMs = context.runtime.monotonicMs() + OWNER_WAIT_MS;
    this.#stage = { kind: "parked", untilMs };
    this.#session.lookAt(untilMs);
  }

  /** Whether this client is served by way of this entry; if not, it has been told where to go. */
  #isServedHere(): boolean {
    const route = routeOf(this.#parts.context, this.#session, this.link);
    switch (route.kind) {
      case "serve":
        return true;
      case "redirect":
        this.#session.close(CLOSE_CODE.wrongShard, route.host);
        return false;
      case "wait":
        this.#wait();
        return false;
    }
  }

  #isHomeBusy(): boolean {
    const { context, homeAllowances } = this.#parts;
    const waitMs = homeAllowances.take(this.link.home, context.runtime.monotonicMs());
    if (waitMs > 0) this.#session.close(CLOSE_CODE.busy, String(waitMs));
    return waitMs > 0;
  }

  /** The owner and this node disagree, and neither knows better. */
  #catchUp(): void {
    if (this.#hasCaughtUp) return this.#wait();
    this.#hasCaughtUp = true;
    this.#stage = { kind: "catching-up" };
    void this.#parts.context.catchUp(CATCH_UP_WAIT_MS).then(() => {
      if (this.#stage.kind === "catching-up") this.#proceed();
    });
  }

  #wait(): void {
    this.#session.close(CLOSE_CODE.restart, String(this.#parts.context.spreadMs()));
  }

  /** What the client says it holds; empty for an app whose token does not work. */
  #credential(): string {
    const { context, nobodysKey } = this.#parts;
    const hello = this.#hello;
    if (!("token" in hello)) return context.identities.boxKey(hello.home) ?? nobodysKey;
    const known = context.identities.token(hello.token, "app");
    return known?.home === hello.home ? known.keyId : "";
  }
}

/** Where a link's client belongs now. */
export function routeOf(context: LinkContext, { dialled }: LinkSession, link: VerifiedLink): LinkRoute {
  return routeHome(context, link.home, dialled, link.isFollowing);
}

/** Closes a link that its owner does not take. */
export function closeRefused(
  session: LinkSession,
  refusal: Exclude<LinkRefusal, { readonly kind: "not-owner" }>,
): void {
  switch (refusal.kind) {
    case "incumbent-stays":
    case "busy":
      return session.close(CLOSE_CODE.busy, String(refusal.waitMs));
    case "superseded":
      return session.close(CLOSE_CODE.replaced, "");
    case "revoked":
    case "home-gone":
      return session.close(CLOSE_CODE.auth, "");
  }
}
