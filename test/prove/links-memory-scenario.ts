// Idle links: what one costs a node in memory, beside a bare `ws` server that holds the same number.
//
// Spec: L25. The promise: a link costs a node no more than 12 KiB.
// I1  Server and clients are processes of their own; every link has a home of its own, so that what a shard keeps of a
//     home is in the figure too.
// I2  Both servers run with a bounded young generation (YOUNG_ARGS). Left alone V8 lets it grow by up to 128 MiB while
//     many links come, once a process and however many they are; that figure is printed beside.

import { MEMORY_PROBE_ARGS, readMemory, startPart } from "../bench/parts.ts";
import { startLinkFleet, type LinkFleetOptions } from "@moor/testkit/link-fleet";
import { writeListenerCertificate, type ListenerCertificate } from "@moor/testkit/listener-certificate";
import type { RunningProcess } from "@moor/testkit/processes";
import { createTempDir } from "@moor/testkit/temp-dir";
import { setLinkStage } from "./link-stage.ts";
import { below, type Pace, type Scenario } from "./scenario.ts";

/** What one more link costs. */
export interface LinkMemory {
  /** Resident bytes. */
  readonly rssBytes: number;
  /** Bytes of live JavaScript objects. */
  readonly heapBytes: number;
}

export interface LinksMemoryRun {
  readonly moor: LinkMemory;
  /** With V8's own bounds. */
  readonly moorUnbounded: LinkMemory;
  readonly bare: LinkMemory;
  readonly moorTls: LinkMemory;
  readonly bareTls: LinkMemory;
}

/** What docs/operations/serve-boxes-and-apps.md advises for nodes with many links. */
const YOUNG_ARGS = ["--max-semi-space-size=16"] as const;
/** Links that come and go before anything is measured: everything is compiled then. */
const WARM_UP_LINKS = 300;
const KIB = 1024;
const LINK_BYTES_MAX = 12 * KIB;
/** New links a second: what two cores take without a queue. */
const DIALS_PER_S = 500;
const TLS_DIALS_PER_S = 200;
/** How soon a client dials again that was refused. Milliseconds, at random. */
const REDIAL_WITHIN_MS = 2_000;
/** Longest wait for all links. Milliseconds. */
const ONLINE_MS_MAX = 300_000;
const HOSTS = ["moor.localhost", "*.moor.localhost"];

/** Measures all four, each server started for it. */
export async function runLinksMemory({ memoryLinks, tlsLinks }: Pace["links"]): Promise<LinksMemoryRun> {
  const dir = await createTempDir("links-memory");
  try {
    const certificate = writeListenerCertificate(dir.path, HOSTS);
    return {
      bare: await measureBare(memoryLinks),
      moor: await measureMoor(memoryLinks),
      moorUnbounded: await measureMoor(memoryLinks, undefined, []),
      bareTls: await measureBare(tlsLinks, certificate),
      moorTls: await measureMoor(tlsLinks, certificate),
    };
  } finally {
    await dir.remove();
  }
}

async function measureMoor(
  count: number,
  certificate?: ListenerCertificate,
  youngArgs: readonly string[] = YOUNG_ARGS,
): Promise<LinkMemory> {
  const nodeArgs = [...MEMORY_PROBE_ARGS, ...youngArgs];
  const stage = await setLinkStage({ homes: count, certificate, nodeArgs });
  try {
    return await measure(stage.node.process, {
      kind: "plain",
      endpoint: stage.endpoint,
      clients: stage.homes,
      serviceKeys: stage.serviceKeys,
      redialWithinMs: REDIAL_WITHIN_MS,
      ...dialling(certificate),
    });
  } finally {
    await stage.strike();
  }
}

async function measureBare(count: number, certificate?: ListenerCertificate): Promise<LinkMemory> {
  const env = { BENCH_CERT: certificate?.certFile, BENCH_KEY: certificate?.keyFile };
  const server = await startPart("bare-link-server.ts", {
    nodeArgs: [...MEMORY_PROBE_ARGS, ...YOUNG_ARGS],
    env,
  });
  try {
    const port = await server.stdout.waitFor(/^\d+$/);
    const clients = Array.from({ length: count }, () => ({ home: "none", seed: "" }));
    const endpoint = `${certificate === undefined ? "ws" : "wss"}://moor.localhost:${port}`;
    return await measure(server, {
      kind: "bare",
      endpoint,
      clients,
      serviceKeys: [],
      ...dialling(certificate),
    });
  } finally {
    await server.kill();
  }
}

function dialling(certificate: ListenerCertificate | undefined): Pick<LinkFleetOptions, "dialsPerS" | "ca"> {
  if (certificate === undefined) return { dialsPerS: DIALS_PER_S };
  return { dialsPerS: TLS_DIALS_PER_S, ca: certificate.ca };
}

async function measure(server: RunningProcess, options: LinkFleetOptions): Promise<LinkMemory> {
  const warmUp = await startLinkFleet({ ...options, clients: options.clients.slice(0, WARM_UP_LINKS) });
  await warmUp.untilOnline(ONLINE_MS_MAX);
  await warmUp.stop();
  const before = await readMemory(server);
  const fleet = await startLinkFleet({ ...options, processes: 2 });
  try {
    await fleet.untilOnline(ONLINE_MS_MAX);
    const after = await readMemory(server);
    const { length } = options.clients;
    return {
      rssBytes: Math.round((after.rss - before.rss) / length),
      heapBytes: Math.round((after.heapUsed - before.heapUsed) / length),
    };
  } finally {
    await fleet.stop();
  }
}

/** The scenario. */
export const linksMemoryScenario: Scenario = {
  name: "links-memory",
  title: "Memory of idle links, beside bare ws",
  needsPostgres: false,
  run: async ({ links }) => {
    const { moor, moorUnbounded, bare, moorTls, bareTls } = await runLinksMemory(links);
    const kib = (bytes: number) => Math.round((bytes / KIB) * 10) / 10;
    return {
      claims: [
        below("a link costs at most 12 KiB of resident memory", moor.rssBytes, LINK_BYTES_MAX + 1, "bytes"),
        below("a link costs at most 12 KiB of live heap", moor.heapBytes, LINK_BYTES_MAX + 1, "bytes"),
      ],
      figures: {
        links: links.memoryLinks,
        "resident KiB a link, Moor": kib(moor.rssBytes),
        "resident KiB a link, bare ws": kib(bare.rssBytes),
        "live heap KiB a link, Moor": kib(moor.heapBytes),
        "live heap KiB a link, bare ws": kib(bare.heapBytes),
        "resident KiB a link, Moor, young generation unbounded": kib(moorUnbounded.rssBytes),
        "links over TLS": links.tlsLinks,
        "resident KiB a link over TLS, Moor": kib(moorTls.rssBytes),
        "resident KiB a link over TLS, bare ws": kib(bareTls.rssBytes),
        "live heap KiB a link over TLS, Moor": kib(moorTls.heapBytes),
        "live heap KiB a link over TLS, bare ws": kib(bareTls.heapBytes),
      },
    };
  },
};
