// What a box is given to tell: lines of `{"event":…}` and `{"now":…}`, from a file or another program.
//
// Spec: L31.
// I1  A line that is neither is skipped and warned of. I2  Values go on byte for byte.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { RawJson, type BoxLink } from "@moor/client";
import { scanJson } from "@moor/protocol";
import { ConfigError, errorCodeOf, type Logger } from "@moor/runtime";

/** Depth of a line that is read. */
const DEPTH_MAX = 1_000;

/** Tells what the lines of `file` (`-`: stdin) say until it ends or `signal` fires. Rejects with ConfigError for no file. */
export async function followFeed(
  option: string,
  file: string,
  box: Pick<BoxLink, "setNow" | "sendEvent">,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  const input = file === "-" ? process.stdin : createReadStream(file, "utf8");
  input.once("error", (error: unknown) => {
    const got = `${JSON.stringify(file)} (${errorCodeOf(error, "unreadable")})`;
    logger.error("feed-failed", { reason: new ConfigError(option, got, "a file that can be read").message });
  });
  const lines = createInterface({ input, crlfDelay: Infinity });
  signal.addEventListener("abort", () => {
    lines.close();
    // It would keep the process alive.
    input.destroy();
  });
  for await (const line of lines) if (line.trim() !== "") tellLine(line, box, logger);
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
