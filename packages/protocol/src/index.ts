export * from "./base64url.ts";
export * from "./capabilities.ts";
export * from "./correction.ts";
export * from "./error-table.ts";
export * from "./hop-by-hop.ts";
export * from "./http-date.ts";
export type { ScanFailure } from "./json-cursor.ts";
export * from "./json-parts.ts";
export * from "./json-scan.ts";
export { stringText } from "./json-string.ts";
export * from "./limits.ts";
export * from "./link-event.ts";
export * from "./link-follower.ts";
export * from "./link-frame-types.ts";
export {
  dataBytesMax,
  encodeLinkFrame,
  parseLinkFrame,
  type FrameRefusal,
  type ParsedLinkFrame,
} from "./link-frames.ts";
export * from "./link-limits.ts";
export * from "./link-names.ts";
export * from "./link-ping.ts";
export * from "./link-record.ts";
export * from "./link-signature.ts";
export * from "./link-state.ts";
export * from "./link-token.ts";
export * from "./link-trouble.ts";
export * from "./loopback-host.ts";
export * from "./names.ts";
export * from "./poll-answer.ts";
export * from "./poll-backoff.ts";
export * from "./poll-routing.ts";
export * from "./response-timeout.ts";
export * from "./restart-spread.ts";
export * from "./retry-after.ts";
export * from "./server-info.ts";
export * from "./shard-host.ts";
export * from "./tunnel-failure.ts";
