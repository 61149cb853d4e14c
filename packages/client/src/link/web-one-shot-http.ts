// One-shots in browsers, over `fetch`. A browser may repeat a 421 by itself; the service expects that (L19).
//
// Spec: L19, L33, L34.
// I1  No cookie, no cache, no referrer, no redirect.

import type { Runtime } from "@moor/runtime/portable";
import type { OneShotAnswer, OneShotHttp, OneShotRequest } from "./one-shot-http.ts";

/** The part of fetch that is used. */
type Fetch = (
  url: string,
  init: Readonly<Record<string, unknown>>,
) => Promise<{
  readonly status: number;
  readonly headers: { entries(): Iterable<[string, string]> };
  text(): Promise<string>;
}>;

/** One-shots over the global fetch. */
export function createWebOneShotHttp(runtime: Runtime): OneShotHttp {
  return {
    request: async (request, signal) => {
      const ending = new AbortController();
      const abort = () => ending.abort();
      const timer = runtime.schedule(request.deadlineMs, abort);
      signal?.addEventListener("abort", abort, { once: true });
      try {
        return await send(request, ending.signal);
      } catch {
        const { navigator } = globalThis as { readonly navigator?: { readonly onLine?: boolean } };
        return { kind: "fault", trouble: "connect", wasWritten: navigator?.onLine !== false };
      } finally {
        runtime.cancel(timer);
        signal?.removeEventListener("abort", abort);
      }
    },
    close: () => Promise.resolve(),
  };
}

async function send(request: OneShotRequest, signal: AbortSignal): Promise<OneShotAnswer> {
  const { url, method, headers, body } = request;
  const { fetch } = globalThis as unknown as { readonly fetch: Fetch };
  const answer = await fetch(url.origin + url.path, {
    method,
    headers,
    body,
    signal,
    redirect: "error",
    credentials: "omit",
    cache: "no-store",
    referrerPolicy: "no-referrer",
  });
  const text = await answer.text();
  return { kind: "answer", status: answer.status, headers: [...answer.headers.entries()], body: text };
}
