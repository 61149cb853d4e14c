// A call as the bytes of a command, and commands as the body of a poll's answer.
//
// Spec: T4, T5.
// I1  The caller's message is carried as the bytes it sent: number literals, key order and escapes survive.

import { encodeResponseTimeout, type ChannelName, type CommandType } from "@moor/protocol";
import type { EncodedCommand, HandedOutCommand } from "../peer/peer-link.ts";
import type { CommandHeaders } from "./forwarded-headers.ts";

export interface CommandFields {
  readonly requestId: string;
  readonly shardToken: string;
  readonly commandType: CommandType;
  readonly channel: ChannelName;
  /** Wall clock at the caller's request, milliseconds. */
  readonly createdAtMs: number;
  readonly headers: CommandHeaders;
  readonly payload: Uint8Array | undefined;
}

/** Encodes all of a command but the time it has left. */
export function encodeCommand(fields: CommandFields): EncodedCommand {
  const members = JSON.stringify({
    command_type: fields.commandType,
    request_id: fields.requestId,
    shard_token: fields.shardToken,
    channel: fields.channel,
    created_at: new Date(fields.createdAtMs).toISOString(),
    headers: fields.headers,
  });
  return { members: members.slice(1, -1), payload: fields.payload };
}

/** The body of a 200: `{"commands":[…]}`. */
export function encodeCommands(
  commands: readonly Pick<HandedOutCommand, "command" | "remainingMs">[],
): Uint8Array {
  const parts: Uint8Array[] = [];
  commands.forEach(({ command, remainingMs }, at) => {
    const opening = at === 0 ? '{"commands":[{' : ",{";
    const timeout = `"response_timeout":"${encodeResponseTimeout(remainingMs)}"`;
    if (command.payload === undefined) parts.push(Buffer.from(`${opening}${command.members},${timeout}}`));
    else {
      parts.push(Buffer.from(`${opening}${command.members},${timeout},"jsonrpc":`), command.payload, CLOSE);
    }
  });
  parts.push(END);
  return Buffer.concat(parts);
}

const CLOSE = Buffer.from("}");
const END = Buffer.from("]}");
