// One connection to PostgreSQL that comes back by itself: made when it is needed, dropped when it fails.
//
// I1  No error of the database, and no URL, is passed on as it is: they hold values and passwords. `reason` is a code.
// I2  Whatever hangs ends: connecting, each answer, and on the server's side each statement, lock and idle transaction.
// I3  A connection that failed in the middle of an answer is never used again.

import { Socket } from "node:net";
import { Client, DatabaseError, types, type QueryResult } from "pg";
import { ConfigError, type Logger, type Secret } from "@moor/runtime";
import type { Row, SqlValue } from "./statements.ts";

/** Longest time a statement, a lock or an idle transaction may take on the server. Milliseconds. */
export const STATEMENT_MS_MAX = 5_000;
/** Longest time an answer may take to arrive unless told otherwise: above the server's own limit. Milliseconds. */
const ANSWER_MS_MAX = 6_000;
/** Longest time a connection may take to be made. Milliseconds. */
const CONNECT_MS_MAX = 5_000;

/** Statements over an open connection. */
export interface PostgresSession {
  /** Rows of a statement. Throws PostgresFailure. */
  rows(sql: string, params?: readonly SqlValue[]): Promise<readonly Row[]>;
  /** Rows of a statement as their values in the statement's order: cheaper where there are many. Throws PostgresFailure. */
  values(sql: string, params: readonly SqlValue[]): Promise<readonly (readonly SqlValue[])[]>;
  /** Runs a statement; gives the server's word for what it did, e.g. `COMMIT`. Throws PostgresFailure. */
  command(sql: string): Promise<string>;
}

/** Why the database did not do it. */
export class PostgresFailure extends Error {
  /** `statement`: the server refused it, the connection stands. `connection`: it broke, or there is none. */
  readonly kind: "statement" | "connection";
  /** SQLSTATE or the system's code, e.g. `40001`, `ECONNREFUSED`. */
  readonly reason: string;

  constructor(kind: PostgresFailure["kind"], reason: string) {
    super(`database ${kind} failure (${reason})`);
    this.name = "PostgresFailure";
    this.kind = kind;
    this.reason = reason;
  }
}

/** What a link needs. */
export interface PostgresLinkOptions {
  readonly url: Secret;
  /** What the server shows this connection as, e.g. `moor feed`. */
  readonly name: string;
  readonly logger: Logger;
  /** Longest time an answer may take to arrive. Milliseconds, default 6_000. */
  readonly answerMsMax?: number | undefined;
  /** Called on each new connection before it is used. */
  readonly onConnect?: (session: PostgresSession) => Promise<void>;
  /** Called for each notification. */
  readonly onNotify?: () => void;
}

interface Connection {
  readonly client: Client;
  readonly socket: Socket;
  readonly session: PostgresSession;
}

/** A connection that comes back by itself. */
export class PostgresLink {
  readonly #options: PostgresLinkOptions;
  #connection: Promise<Connection> | undefined;
  /** Of the connection that is being made. */
  #connecting: Socket | undefined;
  #isClosed = false;

  constructor(options: PostgresLinkOptions) {
    assertPostgresUrl(options.url);
    this.#options = options;
  }

  /** Runs `work` on the connection. Throws PostgresFailure, and what `work` throws. */
  async use<Value>(work: (session: PostgresSession) => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new PostgresFailure("connection", "closed");
    const connecting = (this.#connection ??= this.#remembered(this.#connect()));
    try {
      return await work((await connecting).session);
    } catch (error) {
      const isBroken = error instanceof PostgresFailure && error.kind === "connection";
      if (isBroken) await this.#drop(connecting);
      throw error;
    }
  }

  /** Lets go of the connection, whatever it is doing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#connecting?.destroy();
    if (this.#connection !== undefined) await this.#drop(this.#connection);
  }

  /** A connection that was not made, whyever, is not kept: the next use makes another. */
  #remembered(connecting: Promise<Connection>): Promise<Connection> {
    connecting.catch(() => {
      if (this.#connection === connecting) this.#connection = undefined;
    });
    return connecting;
  }

  async #connect(): Promise<Connection> {
    const { url, name, onConnect, onNotify, logger, answerMsMax = ANSWER_MS_MAX } = this.#options;
    const socket = new Socket();
    this.#connecting = socket;
    const client = new Client({
      connectionString: url.reveal(),
      application_name: name,
      stream: () => socket,
      connectionTimeoutMillis: Math.min(CONNECT_MS_MAX, answerMsMax),
      query_timeout: answerMsMax,
      keepAlive: true,
      types: { getTypeParser: parserOf },
    });
    const session = sessionOf(client);
    const connection = { client, socket, session };
    client.on("error", (error) => {
      logger.warn("directory-connection-lost", { name, reason: codeOf(error) });
      this.#forget(connection);
    });
    client.on("end", () => this.#forget(connection));
    if (onNotify !== undefined) client.on("notification", onNotify);
    try {
      await client.connect();
      await session.command(
        `set statement_timeout = ${STATEMENT_MS_MAX}; set lock_timeout = ${STATEMENT_MS_MAX};
         set idle_in_transaction_session_timeout = ${STATEMENT_MS_MAX}`,
      );
      await onConnect?.(session);
      return connection;
    } catch (error) {
      socket.destroy();
      throw error instanceof PostgresFailure || error instanceof ConfigError
        ? error
        : new PostgresFailure("connection", codeOf(error));
    } finally {
      this.#connecting = undefined;
    }
  }

  #forget(lost: Connection): void {
    const current = this.#connection;
    current?.then(
      (connection) => {
        if (connection === lost && this.#connection === current) this.#connection = undefined;
      },
      () => {},
    );
  }

  async #drop(dropped: Promise<Connection>): Promise<void> {
    if (this.#connection === dropped) this.#connection = undefined;
    await dropped.then(
      ({ client, socket }) => {
        // A server that answers is told; one that does not is not waited for.
        client.end().catch(() => {});
        socket.destroySoon();
      },
      () => {},
    );
  }
}

/** Throws ConfigError for a URL that is none of PostgreSQL's. The URL is not repeated: it holds a password. */
export function assertPostgresUrl(url: Secret): void {
  try {
    const { protocol, hostname } = new URL(url.reveal());
    if (/^postgres(ql)?:$/.test(protocol) && hostname !== "") return;
  } catch {
    // Falls through to the refusal.
  }
  throw new ConfigError(
    "MOOR_DATABASE_URL",
    "a text that is no such URL",
    "postgres://user:password@host:port/database",
  );
}

type TypeId = Parameters<typeof types.getTypeParser>[0];

/** 64-bit integers as numbers: every one of ours is below 2^53. The rest as pg reads them. */
const parserOf: typeof types.getTypeParser = (type: TypeId, format?: "text" | "binary") =>
  type === types.builtins.INT8 ? Number : types.getTypeParser(type, format);

function sessionOf(client: Client): PostgresSession {
  let last: Promise<unknown> = Promise.resolve();
  let broken: PostgresFailure | undefined;
  /** Asks when what was asked before has been answered: the driver wants one statement at a time. */
  const inTurn = <Value>(ask: () => Promise<Value>): Promise<Value> => {
    const answered = last.then(async () => {
      if (broken !== undefined) throw broken;
      try {
        return await ask();
      } catch (error) {
        const failure = failureOf(error);
        if (failure.kind === "connection") broken = failure;
        throw failure;
      }
    });
    last = answered.catch(() => {});
    return answered;
  };
  const ask = (sql: string, params?: readonly SqlValue[]) =>
    inTurn(() => client.query(sql, params === undefined ? undefined : [...params]));
  return {
    rows: async (sql, params = []) => (await ask(sql, params)).rows as readonly Row[],
    values: async (text, params) => {
      const answer = await inTurn(() => client.query({ text, values: [...params], rowMode: "array" }));
      return answer.rows as SqlValue[][];
    },
    command: async (sql) => {
      // Several statements at once give several results.
      const result: QueryResult | readonly QueryResult[] = await ask(sql);
      return [result].flat().at(-1)?.command ?? "";
    },
  };
}

/** SQLSTATEs after which the session stands: the statement was refused. Class 57P and 08 end it. */
function failureOf(error: unknown): PostgresFailure {
  const reason = codeOf(error);
  const isOfServer = error instanceof DatabaseError && !/^(08|57P0[1-5]|25P03)/.test(reason);
  return new PostgresFailure(isOfServer ? "statement" : "connection", reason);
}

/** A code that names no value: SQLSTATE, the system's code, or what pg's own words come to. */
function codeOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  const message = error instanceof Error ? error.message : "";
  if (/timeout/i.test(message)) return "timeout";
  return /terminated|closed|not queryable/i.test(message) ? "connection-ended" : "connection-failed";
}
