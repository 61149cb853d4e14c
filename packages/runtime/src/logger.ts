// Structured logs: one JSON object a line, a fixed event name and allow-listed plain fields.
//
// Levels: error = someone must act · warn = retried by itself · info = one line per life-cycle change · debug = each call.
// I1  A field is a string, number, boolean or null chosen by the caller: no object is ever serialised whole, so a
//     header bag or an error with a body cannot slip in. A Secret prints as "[secret]".
// I2  Logs go to stderr; stdout belongs to the program's answer.

import { pino, type BaseLogger, type DestinationStream, type Logger as PinoLogger } from "pino";
import { Secret } from "./secret.ts";

export const LOG_LEVELS = ["error", "warn", "info", "debug", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogField = string | number | boolean | null | undefined | Secret;
export type LogFields = Readonly<Record<string, LogField>>;

export interface Logger {
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  debug(event: string, fields?: LogFields): void;
  /** Whether a `debug` line would be written: for callers on a hot path that would build its fields in vain. */
  readonly isDebug: boolean;
  /** A logger whose lines all carry `fields`. */
  child(fields: LogFields): Logger;
}

export interface LoggerOptions {
  /** Least severe level written. Default `info`. */
  readonly level?: LogLevel;
  /** Where lines go. Default: this process's stderr, written synchronously so that a dying process loses none. */
  readonly destination?: DestinationStream;
}

/** A Logger that writes JSON lines `{"level","time","event",…fields}`; `time` is RFC 3339. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const sink = pino(
    {
      level: options.level ?? "info",
      base: null,
      messageKey: "event",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
  return wrap(sink, {});
}

/** A Logger that writes nothing. */
export function createSilentLogger(): Logger {
  const silent: Logger = {
    error: () => {},
    warn: () => {},
    info: () => {},
    debug: () => {},
    isDebug: false,
    child: () => silent,
  };
  return silent;
}

function wrap(sink: BaseLogger & Pick<PinoLogger, "isLevelEnabled">, inherited: LogFields): Logger {
  const write = (level: Exclude<LogLevel, "silent">) => (event: string, fields?: LogFields) => {
    if (sink.isLevelEnabled(level)) sink[level](plainFields({ ...inherited, ...fields }), event);
  };
  return {
    error: write("error"),
    warn: write("warn"),
    info: write("info"),
    debug: write("debug"),
    isDebug: sink.isLevelEnabled("debug"),
    child: (fields) => wrap(sink, { ...inherited, ...fields }),
  };
}

function plainFields(fields: LogFields): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    plain[name] =
      value instanceof Secret || (typeof value === "object" && value !== null) ? "[secret]" : value;
  }
  return plain;
}
