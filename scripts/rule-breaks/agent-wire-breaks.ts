// Breaks of what an agent declares and reports: T8, T16, T20.

import { inFile, type RuleBreak } from "./rule-break.ts";

const serverInfo = inFile("server-info.ts");
const failure = inFile("tunnel-failure.ts");

/** Breaks of server-info and tunnel-failure. */
export const AGENT_WIRE_BREAKS: readonly RuleBreak[] = [
  serverInfo("T16", "several lines", "fieldLines.length > 1 ||", ""),
  serverInfo("T16", "no bound in bytes", "line.length > SERVER_INFO_BYTES_MAX", "line.length < 0"),
  serverInfo(
    "T8",
    "any version",
    'info["version"] !== 1 && info["version"] !== 2',
    'info["version"] === undefined',
  ),
  serverInfo("T16", "a name twice", "names.size === channels.length", "names.size > 0"),
  serverInfo("T16", "33 channels", "channels.length <= SERVER_INFO_CHANNELS_MAX", "channels.length <= 33"),
  serverInfo("T16", "no channel", "channels.length >= 1", "channels.length >= 0"),
  serverInfo(
    "T8",
    "stateless in version 1",
    'isVersion2 ? (entry["stateless"] ?? false) : false',
    'entry["stateless"] ?? false',
  ),
  serverInfo("T8", "flags of any type", '|| typeof procAffinity !== "boolean"', ""),
  serverInfo("T16", "version 2 always", "? 2 : 1", "? 2 : 2"),
  serverInfo(
    "T16",
    "false written out",
    "...(procAffinity && { proc_affinity: procAffinity })",
    "proc_affinity: procAffinity",
  ),
  failure(
    "T20",
    "a status beside any source",
    'return status === undefined && !(source === "transport_closed" && isAnswered);',
    'return !(source === "transport_closed" && isAnswered);',
  ),
  failure(
    "T20",
    "target_http without a status",
    "status !== undefined && isErrorStatus(status)",
    "isErrorStatus(status ?? 500)",
  ),
  failure(
    "T20",
    "any label",
    'typeof transport_error_kind === "string" && LABEL.test(transport_error_kind)',
    'typeof transport_error_kind === "string"',
  ),
  failure("T20", "any source", "|| !isSource(source)", ""),
];
