// A page's client as the replay drives it.

import type { FakeLinkService } from "@moor/testkit";
import type { Page } from "playwright-core";
import type { LinkSequence } from "../conformance/link-vector-files.ts";
import type { ReplayedClient } from "../integration/link-replay.ts";
import type { PageClient } from "./page-client.ts";

/** Calls a method of the page's client. */
export function callPage<Name extends keyof PageClient>(
  page: Page,
  name: Name,
  ...args: Parameters<PageClient[Name]>
): Promise<Awaited<ReturnType<PageClient[Name]>>> {
  // What the page does not return is not waited for by the page, so that a promise is awaited there.
  const call = ([method, given]: readonly [string, readonly unknown[]]) => {
    const { client } = globalThis as unknown as { client: Record<string, (...args: unknown[]) => unknown> };
    return client[method]?.(...given);
  };
  return page.evaluate(call, [name, args] as const) as Promise<Awaited<ReturnType<PageClient[Name]>>>;
}

/** A client in this page that links to `service`. */
export function replayedPage(
  service: FakeLinkService,
  { follows }: LinkSequence,
  page: Page,
): ReplayedClient {
  const tokenOf = (home: string) => `${home}.secret`;
  return {
    start: (home, record) =>
      callPage(page, "start", {
        endpoint: service.endpoint,
        token: tokenOf(home),
        serviceKey: service.key.publicKey,
        caps: follows ? ["shard"] : [],
        record,
      }),
    kill: () => callPage(page, "kill"),
    draw: (random) => callPage(page, "draw", random),
    advance: (byMs) => callPage(page, "advance", byMs),
    advanceToState: (byMsMost) => callPage(page, "advanceToState", byMsMost),
    sleepThrough: (byMs) => callPage(page, "sleepThrough", byMs),
    wake: (kind) => callPage(page, "wake", kind),
    rehome: (home) => callPage(page, "setToken", home === undefined ? undefined : tokenOf(home)),
    setWritable: (isWritable) => callPage(page, "setWritable", isWritable),
    nowMs: () => callPage(page, "nowMs"),
    nextState: () => callPage(page, "nextState"),
    takeStates: () => callPage(page, "takeStates"),
    record: async () => (await callPage(page, "record")) ?? undefined,
  };
}
