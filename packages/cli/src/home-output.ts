// How commands show homes, their tokens and who keeps them where they are.

import type { BlockerJson, HomeDetailJson, HomeJson, HomeLiveJson, TokenJson } from "./home-client.ts";

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
    live: home.live === null ? null : liveAnswer(home.live),
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

/** How a home is linked now, for people. */
export function livePairs(live: HomeLiveJson | null): [string, string][] {
  if (live === null) return [["now", "its shard is out of reach"]];
  const { presence, since_ms: sinceMs, box, apps, commands_open: open } = live;
  const where = box === null ? "" : ` at node ${box.node ?? "unknown"}, generation ${box.generation}`;
  const apart = `apps linked: ${apps.length}, commands open: ${open}`;
  return [
    ["now", `box ${presence} for ${Math.round(sinceMs / 1_000)} s${where}`],
    ["", apart],
  ];
}

/** What must be said of two boxes with one key; undefined while there is no sign of it. */
export function duplicateText({ duplicate_identity: found }: HomeLiveJson): string | undefined {
  if (found === null) return undefined;
  const minutes = Math.ceil(found.remaining_ms / 60_000);
  return (
    `Two boxes with the key of this home replace each other: the linked one stays for ${minutes} min more, ` +
    `${found.held_off} times another was held off. Enroll the box that should have the home anew.`
  );
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

function liveAnswer(live: HomeLiveJson): Record<string, unknown> {
  const { presence, box, apps, duplicate_identity: found } = live;
  return {
    presence,
    sinceMs: live.since_ms,
    box:
      box === null
        ? null
        : { node: box.node, ageMs: box.age_ms, shard: box.shard, generation: box.generation },
    apps: apps.map(({ app, node, age_ms: ageMs, shard }) => ({ app, node, ageMs, shard })),
    duplicateIdentity: found === null ? null : { remainingMs: found.remaining_ms, heldOff: found.held_off },
    commandsOpen: live.commands_open,
  };
}

function blockerText({ kind, app, shard, last_seen_at: seenAt }: BlockerJson): string {
  const who = kind === "app" ? `app ${app ?? ""}` : "its box";
  if (shard === null || seenAt === null) return `${who}: never seen`;
  return `${who}: does not follow shards, last seen about ${seenAt}`;
}
