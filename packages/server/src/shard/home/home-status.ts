// What an operator is shown of a home.

import type { HomeStatus, LinkStatus } from "../../peer/link-ports.ts";
import type { HeldLink, HomeLinks } from "./home-links.ts";

/** @param rest what is not about single links */
export function describeHome(
  links: HomeLinks,
  nowMs: number,
  rest: Pick<HomeStatus, "presence" | "duplicateIdentity" | "commandsOpen">,
): HomeStatus {
  const { box } = links;
  const apps = [...links.apps()].flatMap((held) => {
    const { app } = held.link;
    return app === undefined ? [] : [{ ...linkStatus(held, nowMs), app }];
  });
  return {
    ...rest,
    box: box === undefined ? undefined : { ...linkStatus(box, nowMs), generation: box.generation },
    apps,
  };
}

function linkStatus({ link, takenAtMs }: HeldLink, nowMs: number): LinkStatus {
  const { entry, isFollowing } = link;
  return { entry, isFollowing, ageMs: Math.round(nowMs - takenAtMs) };
}
