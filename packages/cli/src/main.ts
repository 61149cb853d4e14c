// The moor program: its commands, and how whatever they throw becomes a message and an exit code.
//
// I1  stdout carries answers only; messages, logs and errors go to stderr.
// I2  Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 cannot reach, 4 outcome unknown (exit-code.ts).

import { Command, CommanderError } from "commander";
import { ConfigError } from "@moor/runtime";
import { registerAgentCommand } from "./commands/agent-command.ts";
import { registerAppCommand } from "./commands/app-command.ts";
import { registerBoxCommand } from "./commands/box-command.ts";
import { registerClusterCommand } from "./commands/cluster-command.ts";
import { registerConfigCommand } from "./commands/config-command.ts";
import { registerCorrectionsCommand } from "./commands/corrections-command.ts";
import { registerDevCommand } from "./commands/dev-command.ts";
import { registerDirectoryCommand } from "./commands/directory-command.ts";
import { registerDrainCommand } from "./commands/drain-command.ts";
import { registerFleetCommands } from "./commands/fleet-command.ts";
import { registerHomeCommand } from "./commands/home-command.ts";
import { registerKeyCommand } from "./commands/key-command.ts";
import { registerMoveCommand } from "./commands/move-command.ts";
import { registerMovesCommand } from "./commands/moves-command.ts";
import { registerServeCommand } from "./commands/serve-command.ts";
import { registerServiceKeyCommand } from "./commands/service-key-command.ts";
import { registerShardCommand } from "./commands/shard-command.ts";
import { registerTokenKeyCommand } from "./commands/token-key-command.ts";
import { registerTunnelCommand } from "./commands/tunnel-command.ts";
import { EXIT_CODE, RefusedError, UnknownOutcomeError, UnreachableError } from "./exit-code.ts";
import { printMessage } from "./output.ts";
import { redactKeys } from "./redact.ts";
import { readVersion } from "./version.ts";

/** Runs `moor …argv` and sets the process's exit code. Never rejects. */
export async function main(argv: readonly string[]): Promise<void> {
  // A reader that closes the pipe early (`| head`) has what it wanted.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    process.exit(error.code === "EPIPE" ? EXIT_CODE.done : EXIT_CODE.refused);
  });
  const code = await runProgram(argv);
  // A command that ran to its end may have set its own: a node that was hurried, say.
  if (code !== EXIT_CODE.done || process.exitCode === undefined) process.exitCode = code;
}

/** Runs `moor …argv` and gives its exit code; touches nothing of the process but its output. Never rejects. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(argv, { from: "user" });
    return EXIT_CODE.done;
  } catch (error) {
    return report(error);
  }
}

function createProgram(): Command {
  const program = new Command("moor")
    .description(
      "Makes private MCP servers, and the boxes of homes, reachable through a connection plane of your own.",
    )
    .version(readVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .exitOverride()
    // `moor box` has options and a verb below it with options of the same names.
    .enablePositionalOptions()
    .configureOutput({ writeErr: (text) => process.stderr.write(redactKeys(text)) })
    .showHelpAfterError("(--help tells more)")
    .addHelpText(
      "after",
      "\nExample, in three terminals:\n  moor dev\n  moor tunnel create --name notes\n" +
        "  MOOR_AGENT_KEY=… moor agent --endpoint http://127.0.0.1:8080 --tunnel ID --mcp http://127.0.0.1:3000/mcp\n\n" +
        "Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 cannot reach the service, 4 outcome unknown.",
    );
  registerDevCommand(program);
  registerServeCommand(program);
  registerAgentCommand(program);
  registerBoxCommand(program);
  registerAppCommand(program);
  registerTunnelCommand(program);
  registerKeyCommand(program);
  registerHomeCommand(program);
  registerFleetCommands(program);
  registerShardCommand(program);
  registerMoveCommand(program);
  registerMovesCommand(program);
  registerDrainCommand(program);
  registerCorrectionsCommand(program);
  registerTokenKeyCommand(program);
  registerServiceKeyCommand(program);
  registerConfigCommand(program);
  registerClusterCommand(program);
  registerDirectoryCommand(program);
  return program;
}

/** Prints what went wrong; gives the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // commander has printed its message or the help; help that was asked for is success.
    return error.exitCode === 0 ? EXIT_CODE.done : EXIT_CODE.usage;
  }
  if (error instanceof ConfigError) {
    printMessage(`moor: ${error.message}`);
    return EXIT_CODE.usage;
  }
  if (error instanceof RefusedError) {
    printMessage(`moor: refused (${error.code}): ${error.message}`);
    return EXIT_CODE.refused;
  }
  if (error instanceof UnreachableError) {
    printMessage(`moor: ${error.message}`);
    return EXIT_CODE.unreachable;
  }
  if (error instanceof UnknownOutcomeError) {
    printMessage(`moor: ${error.message}`);
    return EXIT_CODE.unknown;
  }
  printMessage(
    `moor: internal error: ${error instanceof Error ? (error.stack ?? error.message) : "unknown"}`,
  );
  return EXIT_CODE.refused;
}
