// How commands show homes, their tokens and who keeps them where they are.

import type { BlockerJson, HomeDetailJson, HomeJson, TokenJson } from "./home-client.ts";

/** A home as `--json` shows it. */
export function homeAnswer(home: HomeJson): Record<string, unknown> {
  const { box } = home;
  return {
    id: home.id,
    label: home.label,
    shard: home.shard,
    revision: home.revision,
    box: { enrolled: box.enrolled, keyId: box.key_id, shard: box.shard, lastSeenAt: box.last_seen_at },
    tunnel: home.tunnel,
    mcpUrl: home.mcp_url,
    createdAt: home.created_at,
  };
}

/** A home with its apps as `--json` shows it. */
export function homeDetailAnswer(home: HomeDetailJson): Record<string, unknown> {
  return {
    ...homeAnswer(home),
    apps: home.apps.map(({ app, shard, last_seen_at: lastSeenAt }) => ({ app, shard, lastSeenAt })),
    moveBlockers: home.move_blockers.map(blockerAnswer),
  };
}

/** A home's lines for people. */
export function homePairs(home: HomeJson): [string, string][] {
  return [
    ["home", home.id],
    ...(home.label === "" ? [] : [["label", home.label] as [string, string]]),
    ["shard", home.shard],
    ["box", boxText(home)],
    ["created", home.created_at],
    ...(home.tunnel === null
      ? []
      : ([
          ["tunnel", home.tunnel],
          ["connector URL", home.mcp_url ?? ""],
        ] as [string, string][])),
  ];
}

/** What is known of a home's box, in words. */
export function boxText({ box }: HomeJson): string {
  if (!box.enrolled) return "none enrolled yet";
  if (box.last_seen_at === null) return `enrolled (key ${box.key_id}), never seen`;
  const follows = box.shard === true ? "follows shards" : "does not follow shards";
  return `enrolled (key ${box.key_id}), ${follows}, last seen about ${box.last_seen_at}`;
}

/** Who keeps a home on the default shard, a line each. */
export function blockerLines(blockers: readonly BlockerJson[]): string {
  return blockers.map((blocker) => `  ${blockerText(blocker)}`).join("\n");
}

/** A blocker as `--json` shows it. */
export function blockerAnswer(blocker: BlockerJson): Record<string, unknown> {
  const { last_seen_at: lastSeenAt, ...rest } = blocker;
  return { ...rest, lastSeenAt };
}

/** A token as `--json` shows it. */
export function tokenAnswer(token: TokenJson): Record<string, unknown> {
  const { created_at: createdAt, id, kind, home, label, prefix, revoked } = token;
  return { id, kind, home, label, prefix, createdAt, revoked };
}

function blockerText({ kind, app, shard, last_seen_at: seenAt }: BlockerJson): string {
  const who = kind === "app" ? `app ${app ?? ""}` : "its box";
  if (shard === null || seenAt === null) return `${who}: never seen`;
  return `${who}: does not follow shards, last seen about ${seenAt}`;
}
