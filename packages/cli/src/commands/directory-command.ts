// `moor directory migrate|check|export|import|fence`: the operator's tools on the directory itself, without a node.
//
// Spec: R22. Exit codes: 1 for a check that found problems, 3 for a database that cannot be reached.
// I1  An embedded directory is worked on with its node stopped; PostgreSQL's while nodes run.

import type { Command } from "commander";
import { isProtocolError } from "@moor/protocol";
import { createLogger, createNodeRuntime } from "@moor/runtime";
import type { FenceReport, ToolStore } from "@moor/server/directory-tools";
import {
  addLocationOptions,
  findLocation,
  type FoundLocation,
  type LocationOptions,
} from "../directory-location.ts";
import { openNewFile } from "../new-file.ts";
import { readLines } from "../read-lines.ts";
import { RefusedError, UnreachableError } from "../exit-code.ts";
import { integerOption } from "../option-parsers.ts";
import { printAnswer, printJson, printMessage, printPairs } from "../output.ts";

interface Common extends LocationOptions {
  readonly json?: boolean;
  readonly dryRun?: boolean;
}

const runtime = createNodeRuntime();

/** Adds `directory` and its verbs to the program. */
export function registerDirectoryCommand(program: Command): void {
  const directory = program
    .command("directory")
    .description("migrate, check, save and restore the directory itself");
  registerMigrate(directory);
  registerCheck(directory);
  registerExport(directory);
  registerImport(directory);
  registerFence(directory);
}

function registerMigrate(directory: Command): void {
  const migrate = directory
    .command("migrate")
    .description("bring the database's schema up to this moor; an embedded directory does it by itself")
    .option("--dry-run", "only say what would be done")
    .option("--json", "print one JSON object");
  addLocationOptions(migrate)
    .addHelpText(
      "after",
      "\nRun it before the nodes of the new version. It cannot be undone: export first.\n\n" +
        "Example:\n  MOOR_DATABASE_URL=… moor directory migrate",
    )
    .action((options: Common) =>
      reaching(async () => {
        const { migrateDirectory } = await tools();
        const isDryRun = options.dryRun === true;
        const report = await migrateDirectory(await toolOptions(options), isDryRun);
        if (options.json === true) return printJson({ ...report, dryRun: isDryRun });
        const { from, to } = report;
        if (from === to) return printAnswer(`the schema is at version ${to}, as this moor needs it`);
        printAnswer(`${isDryRun ? "would migrate" : "migrated"} the schema from version ${from} to ${to}`);
      }),
    );
}

function registerCheck(directory: Command): void {
  const check = directory
    .command("check")
    .description("say whether the rows of the directory fit together")
    .option("--json", "print one JSON object");
  addLocationOptions(check)
    .addHelpText("after", "\nChanges nothing.\n\nExample:\n  moor directory check --data ./state")
    .action((options: Common) =>
      working(options, async (store) => {
        const { checkDirectory } = await tools();
        const { counts, seq, lastRevision, problems } = await checkDirectory(store);
        if (options.json === true) printJson({ counts, seq, lastRevision, problems });
        else {
          const numbers: [string, number][] = [...Object.entries(counts), ["newest change", seq]];
          printPairs(
            [...numbers, ["highest revision", lastRevision] as const].map(([name, n]) => [name, String(n)]),
          );
        }
        if (problems.length === 0) return printMessage("\nAll is well.");
        printMessage(`\n${problems.join("\n")}`);
        throw new RefusedError("conflict", `${problems.length} problems found`);
      }),
    );
}

function registerExport(directory: Command): void {
  const save = directory
    .command("export")
    .description("write the directory to a new file (mode 0600), JSON lines")
    .argument("<file>", "file to make")
    .option("--json", "print one JSON object");
  addLocationOptions(save)
    .addHelpText(
      "after",
      "\nIt holds hashes of keys, and token keys sealed under the node secret: keep that apart from it.\n\n" +
        "Example:\n  moor directory export moor-directory.jsonl",
    )
    .action((path: string, options: Common) =>
      working(options, async (store) => {
        const { exportDirectory } = await tools();
        const file = openNewFile("FILE", path);
        try {
          const rows = await exportDirectory(store, runtime, (lines) => file.write(lines));
          file.finish();
          if (options.json === true) return printJson({ file: path, rows });
          printAnswer(`${rows} rows are in ${path}`);
        } catch (error) {
          file.abandon();
          throw error;
        }
      }),
    );
}

function registerImport(directory: Command): void {
  const restore = directory
    .command("import")
    .description("fill a directory that is empty from an export, and fence it")
    .argument("<file>", "an export")
    .option("--above <revision>", ABOVE_HELP, integerOption("--above", 0, Number.MAX_SAFE_INTEGER), 0)
    .option("--dry-run", "only say whether the file is whole")
    .option("--json", "print one JSON object");
  addLocationOptions(restore)
    .addHelpText(
      "after",
      "\nThe nodes need the node secret of the exported directory. Undo: delete the new database or data folder.\n\n" +
        "Example:\n  moor directory migrate && moor directory import moor-directory.jsonl",
    )
    .action((path: string, options: FenceOptions) =>
      reaching(async () => {
        const { importDirectory, verifyExport } = await tools();
        const verified = await verifyExport(readLines(path));
        const { rows, header } = verified;
        if (options.dryRun === true) {
          if (options.json === true) return printJson({ rows, residency: header.residency, dryRun: true });
          return printAnswer(`would import ${rows} rows of residency ${header.residency}`);
        }
        await working(
          options,
          async (store, found) => {
            const above = await knownRevision(options, found);
            const report = await importDirectory(store, runtime, verified, readLines(path), above);
            if (options.json === true) return printJson({ rows, ...report });
            printAnswer(`imported ${rows} rows of residency ${header.residency}`);
            printFence(report);
          },
          true,
        );
      }),
    );
}

interface FenceOptions extends Common {
  readonly above: number;
}

const ABOVE_HELP = "highest revision that anybody is known to have seen, as the nodes' logs say";

function registerFence(directory: Command): void {
  const fence = directory
    .command("fence")
    .description("after a restore or a failover that lost writes: make nodes trust the directory again")
    .option("--above <revision>", ABOVE_HELP, integerOption("--above", 0, Number.MAX_SAFE_INTEGER), 0)
    .option("--dry-run", "only say above which revision it would go")
    .option("--json", "print one JSON object");
  addLocationOptions(fence)
    .addHelpText(
      "after",
      "\nGives every tenant a new revision where it is, and the directory a new incarnation. What a node had seen is\n" +
        "read from its data folder where --data or --config names one. It cannot be undone, and may be repeated.\n\n" +
        "Example:\n  MOOR_DATABASE_URL=… moor directory fence --data /var/lib/moor",
    )
    .action((options: FenceOptions) =>
      working(options, async (store, found) => {
        const { fenceDirectory } = await tools();
        const above = await knownRevision(options, found);
        if (options.dryRun === true) {
          if (options.json === true) return printJson({ above, dryRun: true });
          return printAnswer(`would give every tenant a revision above ${above} and the present time`);
        }
        const report = await fenceDirectory(store, runtime, above);
        if (options.json === true) return printJson(report);
        printFence(report);
      }),
    );
}

function printFence({ incarnation, above, restamped }: FenceReport): void {
  printAnswer(`fenced: incarnation ${incarnation}, ${restamped} tenants placed anew above revision ${above}`);
  printMessage("Running nodes follow within a second.");
}

/** The highest revision anybody is known to have seen: told, or kept by the node of the named data folder. */
async function knownRevision(options: FenceOptions, { dataDir }: FoundLocation): Promise<number> {
  const { readWatermark } = await tools();
  const watermark = dataDir === undefined ? undefined : readWatermark(dataDir);
  return Math.max(options.above, watermark?.revision ?? 0);
}

/** Opens the directory for `work`; closes it whatever comes of that. */
function working(
  options: Common,
  work: (store: ToolStore, found: FoundLocation) => Promise<void>,
  mayBeNew = false,
): Promise<void> {
  return reaching(async () => {
    const { openToolStore } = await tools();
    const found = await findLocation(options);
    const store = await openToolStore({ location: found.location, runtime, logger: toolLogger() }, mayBeNew);
    try {
      await work(store, found);
    } finally {
      await store.close();
    }
  });
}

async function toolOptions(options: Common) {
  const { location } = await findLocation(options);
  return { location, runtime, logger: toolLogger() };
}

/** Errors of the protocol as what the program prints and ends with. */
async function reaching(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isProtocolError(error)) throw error;
    if (error.code !== "directory_unavailable") throw new RefusedError(error.code, error.message);
    throw new UnreachableError(
      `cannot reach the directory: ${error.message}`,
      "Check that the database runs and that its URL is right.",
    );
  }
}

function toolLogger() {
  return createLogger({ level: "error" });
}

/** Imported when asked for: the other commands do not need a database to start. */
function tools() {
  return import("@moor/server/directory-tools");
}
