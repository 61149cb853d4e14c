// Requests to an operator listener (docs/protocol T1) and what their failures mean.
//
// I1  A redirect is never followed: it would carry the token elsewhere.
// I2  What is not an operator listener's answer is refused as such, never taken for one.

import { userInfo } from "node:os";
import { RefusedError, UnreachableError } from "./exit-code.ts";
import type { OperatorAddress } from "./operator-address.ts";

/** One page of a list. */
export interface ListJson<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** Which part of a list: a page of `limit`, or everything when there is no limit. */
export interface ListRequest {
  readonly limit?: number;
  readonly after?: string;
}

/** Longest wait for an answer of the operator listener. Milliseconds. */
const ANSWER_MS = 30_000;
/** Items asked for at once when everything is wanted. */
const PAGE_ITEMS = 500;

/** Sends requests with the token and the actor. Methods reject with RefusedError or UnreachableError. */
export class OperatorHttp {
  readonly #address: OperatorAddress;
  readonly #actor: string | undefined;

  /** @param actor who asks, for the audit; default $MOOR_ACTOR, else the name of this user */
  constructor(address: OperatorAddress, actor: string | undefined = readActor()) {
    this.#address = address;
    this.#actor = actor;
  }

  /** @param answerMs longest wait, milliseconds; default 30 s */
  async request<Answer>(method: string, path: string, body?: unknown, answerMs = ANSWER_MS): Promise<Answer> {
    const response = await this.#fetch(method, path, body, answerMs);
    const text = await response.text().catch(() => "");
    const json = parseJson(text);
    if (response.ok && json !== undefined) return json as Answer;
    throw refusal(response.status, json);
  }

  /** A page, or all of a list, whose items the answer has under `member`. */
  async list<Item>(
    path: string,
    member: string,
    { limit, after }: ListRequest,
    filter: Readonly<Record<string, string | undefined>> = {},
  ): Promise<ListJson<Item>> {
    const items: Item[] = [];
    let cursor = after;
    for (;;) {
      const query = new URLSearchParams({ limit: String(limit ?? PAGE_ITEMS) });
      for (const [name, value] of Object.entries({ ...filter, after: cursor })) {
        if (value !== undefined) query.set(name, value);
      }
      const page = await this.request<unknown>("GET", `${path}?${query.toString()}`);
      const { [member]: found, next } = isObject(page) ? page : {};
      if (!Array.isArray(found) || !(next === null || typeof next === "string")) throw foreign(200);
      items.push(...(found as Item[]));
      if (next === null || limit !== undefined) return { items, next };
      cursor = next;
    }
  }

  async #fetch(method: string, path: string, body: unknown, answerMs: number): Promise<Response> {
    const { url, token } = this.#address;
    try {
      return await fetch(url + path, {
        method,
        redirect: "manual",
        signal: AbortSignal.timeout(answerMs),
        headers: {
          Authorization: `Bearer ${token.reveal()}`,
          Accept: "application/json",
          ...(this.#actor === undefined ? {} : { "X-Moor-Actor": this.#actor }),
          ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new UnreachableError(
        `cannot reach the operator listener at ${url} (${reasonOf(error)})`,
        "Check that the node runs and that the address is right; --operator or --data names another one.",
      );
    }
  }
}

/** Names that a header cannot carry are left out: the node then says `operator`. */
function readActor(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const name = env["MOOR_ACTOR"] ?? userName();
  return name !== undefined && /^[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?$/.test(name) ? name : undefined;
}

function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // A user id without an entry in the system's list of users, as in containers.
    return undefined;
  }
}

function refusal(status: number, json: unknown): RefusedError {
  const error = isObject(json) && isObject(json["error"]) ? json["error"] : {};
  const { code, message, data } = error;
  if (typeof code === "string" && typeof message === "string") {
    return new RefusedError(code, message, isObject(data) ? data : {});
  }
  return foreign(status);
}

function foreign(status: number): RefusedError {
  return new RefusedError(`http_${status}`, "the answer is not one of an operator listener");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The system's own code, e.g. ECONNREFUSED. Other messages are not repeated: they may hold what was sent. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown failure";
  if (error.name === "TimeoutError") return "no answer in time";
  const { cause } = error;
  return cause instanceof Error && "code" in cause ? String(cause.code) : error.name;
}
