// A shard that another node takes for one of ours: whatever it is asked, it does not own the home.

import type { ShardId } from "../directory/directory.ts";
import type { HomeShardPort, LinkEntryPort } from "./link-ports.ts";

const NOT_OWNER = { kind: "not-owner", placement: undefined } as const;

/** @param entry the entry that asks */
export function foreignHomeShard(shard: ShardId, entry: () => LinkEntryPort): HomeShardPort {
  const ignore = () => {};
  const port: HomeShardPort = {
    shard,
    registerLink: ({ linkId }) => entry().linkRefused(linkId, NOT_OWNER, port),
    submitCommand: ({ submission, isAgain }) =>
      entry().commandEnded(submission, isAgain ? { kind: "unknown" } : NOT_OWNER),
    readNow: (_home, _placement, answer) => answer(NOT_OWNER),
    describeHome: (_home, answer) => answer(undefined),
    withdrawLink: ignore,
    withdrawCommand: ignore,
    commandSettled: ignore,
    boxAnswered: ignore,
    boxEvent: ignore,
    boxNow: ignore,
  };
  return port;
}
