// `npm run demo`: a private MCP server is called through Moor, once, for everybody to see; then a fleet is, while its
// tunnels move; then a box and an app follow their home. Ends by itself, with exit code 0 only if every call was answered and executed once, progress came as it
// happened, and nothing is left behind.
// `npm run demo -- --stay` leaves the first act's parts up until Ctrl-C and prints what a client needs.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { parseFlags } from "../scripts/parse-flags.ts";
import { playFleetAct } from "./fleet-act.ts";
import { playHomeAct } from "./home-act.ts";
import { createNarrator, type Narrator } from "./narrator.ts";
import { setStage, type Stage } from "./stage.ts";

const CRATES = 4;

/** What an official client does, with nothing but the connector's URL and key; throws when it is not as it should be. */
async function callThroughMoor(stage: Stage, narrator: Narrator): Promise<void> {
  const client = new Client({ name: "demo-client", version: "1.0.0" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(stage.tunnel.connectorUrl), {
      requestInit: { headers: { Authorization: `Bearer ${stage.tunnel.connectorKey ?? ""}` } },
    }),
  );
  narrator.say(`initialize: it speaks to "${client.getServerVersion()?.name ?? "?"}".`);

  const { tools } = await client.listTools();
  narrator.say(`tools/list: ${tools.map((tool) => tool.name).join(", ")}`);

  const berths = await client.callTool({ name: "list_berths", arguments: {} });
  narrator.say(`list_berths answers: ${textOf(berths)}`);

  narrator.say(`load_ship is called for ${CRATES} crates; it takes its time.`);
  const progressAtMs: number[] = [];
  const loaded = await client.callTool(
    { name: "load_ship", arguments: { ship: "Grace", crates: CRATES } },
    {
      onprogress: (report) => {
        progressAtMs.push(narrator.elapsedMs());
        narrator.say(`  progress ${report.progress}/${report.total ?? "?"}: ${report.message ?? ""}`);
      },
    },
  );
  narrator.say(`load_ship answers: ${textOf(loaded)}`);
  if (new Set(progressAtMs).size !== CRATES) throw new Error("progress did not arrive as it happened");
  await client.close();
}

function textOf(result: Awaited<ReturnType<Client["callTool"]>>): string {
  const [first] = result.content;
  return first?.type === "text" ? first.text : JSON.stringify(result.content);
}

/** Prints URL, key and a configuration to paste, then waits for Ctrl-C. Here, and only here, keys are shown. */
async function stay({ node, tunnel }: Stage): Promise<void> {
  const authorization = `Bearer ${tunnel.connectorKey ?? ""}`;
  const server = { type: "http", url: tunnel.connectorUrl, headers: { Authorization: authorization } };
  console.log(`
Everything stays up. For your own MCP client:

  URL  ${tunnel.connectorUrl}
  key  ${tunnel.connectorKey ?? ""}

${JSON.stringify({ mcpServers: { harbour: server } }, null, 2)}

For the operator commands, in another terminal:

  npx moor tunnel list --data ${node.dataDir}

Ctrl-C ends the demo.`);
  await new Promise<void>((resolve) => {
    onSignal = resolve;
  });
  console.log();
}

function assertNothing(leftovers: readonly string[]): void {
  if (leftovers.length > 0) throw new Error(`left behind: ${leftovers.join(", ")}`);
}

/** What Ctrl-C does now. By itself it ends the demo at once; what was started is killed as the process exits. */
let onSignal: () => void = () => process.exit(130);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => onSignal());

const flags = parseFlags("npm run demo [-- --stay] [--screenshot FILE]", {
  stay: { type: "boolean", default: false },
  screenshot: { type: "string" },
});
const narrator = createNarrator();
try {
  narrator.chapter("Setting up: all of it on this machine, with ports that were free.");
  const stage = await setStage(narrator);
  let leftovers: readonly string[];
  try {
    narrator.chapter("An official MCP client calls the server through the node.");
    await callThroughMoor(stage, narrator);
    if (flags.stay) await stay(stage);
  } finally {
    narrator.chapter("Taking down.");
    leftovers = await stage.strike();
  }
  assertNothing(leftovers);
  narrator.say("Agent, server and node have ended; their process groups are empty and their ports are free.");
  if (!flags.stay) {
    narrator.chapter("Act two: a fleet of nodes, and tunnels that move while they are called.");
    assertNothing(await playFleetAct(narrator));
    narrator.say("The fleet and its database have ended, and nothing of them is left.");
    narrator.chapter("Act three: a box and an app that follow their home, over a move and a restart.");
    assertNothing(await playHomeAct(narrator, { screenshot: flags.screenshot }));
    narrator.say("App, box and node have ended, and nothing of them is left.");
  }
} catch (error) {
  console.error(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
