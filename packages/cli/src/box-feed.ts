// What a box is given to tell: lines of `{"event":…}` and `{"now":…}`, from a file or another program.
//
// Spec: L31.
// I1  A line that is neither is skipped and warned of. I2  Values go on byte for byte.

import { accessSync, constants, createReadStream, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { RawJson, type BoxLink } from "@moor/client";
import { scanJson } from "@moor/protocol";
import { ConfigError, errorCodeOf, type Logger } from "@moor/runtime";

/** Depth of a line that is read. */
const DEPTH_MAX = 1_000;

/** Throws ConfigError unless `file` can be read; `-` is stdin, which can. */
export function assertFeed(option: string, file: string): void {
  if (file === "-") return;
  try {
    accessSync(file, constants.R_OK);
    if (!statSync(file).isDirectory()) return;
  } catch (error) {
    throw unreadable(option, file, errorCodeOf(error, "unreadable"));
  }
  throw unreadable(option, file, "EISDIR");
}

/** Tells what the lines of `file` (`-`: stdin) say until it ends or `signal` fires. Never rejects: a file that fails is an
 *  error in the log, and the box goes on. */
export async function followFeed(
  option: string,
  file: string,
  box: Pick<BoxLink, "setNow" | "sendEvent">,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  const input = file === "-" ? process.stdin : createReadStream(file, "utf8");
  const lines = createInterface({ input, crlfDelay: Infinity });
  signal.addEventListener("abort", () => {
    lines.close();
    // It would keep the process alive.
    input.destroy();
  });
  try {
    for await (const line of lines) if (line.trim() !== "") tellLine(line, box, logger);
  } catch (error) {
    if (signal.aborted) return;
    const { message } = unreadable(option, file, errorCodeOf(error, "unreadable"));
    logger.error("feed-failed", { reason: message });
  }
}

function unreadable(option: string, file: string, code: string): ConfigError {
  return new ConfigError(option, `${JSON.stringify(file)} (${code})`, "a file that can be read");
}

function tellLine(line: string, box: Pick<BoxLink, "setNow" | "sendEvent">, logger: Logger): void {
  const told = parseFeedLine(line);
  try {
    if (told === undefined) logger.warn("feed-line-skipped", { reason: "neither event nor now" });
    else if (told.kind === "now") box.setNow(told.data);
    else if (!box.sendEvent(told.data)) logger.warn("event-not-sent");
  } catch {
    logger.warn("feed-line-skipped", { reason: "too large" });
  }
}

/** What a line says; undefined for one that is no object of exactly `event` or `now`. */
export function parseFeedLine(
  line: string,
): { readonly kind: "event" | "now"; readonly data: RawJson } | undefined {
  const bytes = Buffer.from(line);
  const scan = scanJson(bytes, { depthMax: DEPTH_MAX });
  const [member, ...others] = scan.ok ? scan.members : [];
  if (member === undefined || others.length > 0) return undefined;
  if (member.key !== "event" && member.key !== "now") return undefined;
  const { start, end } = member.value;
  return { kind: member.key, data: new RawJson(bytes.subarray(start, end).toString("utf8")) };
}
