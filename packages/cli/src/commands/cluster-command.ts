// `moor cluster cert`: the authority of a residency's nodes and the nodes' certificates, as files.
//
// Spec: docs/protocol/peer-link.md, P5. Works on files alone: no node is asked.
// I1  A private key is written with mode 0600 and never printed.
// I2  Files are replaced only with --force, and kept as `.old` then.

import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Argument, type Command } from "commander";
import { ConfigError, errorCodeOf, createNodeRuntime, Secret } from "@moor/runtime";
import {
  encodeNodeUri,
  isNodeId,
  isResidency,
  makeAuthority,
  makeNodeCertificate,
  readAuthorityResidency,
  type MadeCertificate,
} from "@moor/server/certificates";
import { placeFiles } from "../file-placement.ts";
import { integerOption } from "../option-parsers.ts";
import { printJson, printMessage, printPairs } from "../output.ts";

interface CertOptions {
  readonly dir: string;
  readonly residency?: string;
  readonly host?: readonly string[];
  readonly days?: number;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** Ten years: replacing an authority touches every node. Days. */
const AUTHORITY_DAYS = 3_650;
/** A year: replacing a node's certificate takes two files and no restart. Days. */
const NODE_DAYS = 365;
/** Longest life that can be asked for. Days. */
const DAYS_MAX = 36_500;

/** Adds `cluster` and its verbs to the program. */
export function registerClusterCommand(program: Command): void {
  const cluster = program.command("cluster").description("what nodes need to trust each other");
  cluster
    .command("cert")
    .description("make the authority of a residency, or a node's certificate")
    .addArgument(
      new Argument("<what>", "ca: the authority; node: a node's certificate").choices(["ca", "node"]),
    )
    .argument("[name]", "id of the node, as in its configuration")
    .requiredOption("--dir <dir>", "folder of the authority's files and of what is made")
    .option("--residency <name>", "ca: residency whose nodes it signs (default: global)")
    .option("--host <names...>", "node: host names and addresses, for tools that look at them")
    .option(
      "--days <n>",
      `how long it is good (default: ca ${AUTHORITY_DAYS}, node ${NODE_DAYS})`,
      integerOption("--days", 1, DAYS_MAX),
    )
    .option("--force", "replace files that exist; they are kept as .old")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nPeer links off loopback need these files; see docs/operations/make-cluster-certificates.md.\n\nExample:\n" +
        "  moor cluster cert ca --dir certs --residency eu\n  moor cluster cert node n1 --dir certs",
    )
    .action((what: string, name: string | undefined, options: CertOptions) =>
      what === "ca" ? makeCa(name, options) : makeNode(name, options),
    );
}

function makeCa(name: string | undefined, options: CertOptions): void {
  const { residency = "global", days = AUTHORITY_DAYS } = options;
  if (name !== undefined) throw new ConfigError("NAME", JSON.stringify(name), "none for ca");
  if (options.host !== undefined) throw new ConfigError("--host", "some", "none for ca");
  if (!isResidency(residency)) {
    throw new ConfigError("--residency", JSON.stringify(residency), "1 to 32 characters of a-z, 0-9 and -");
  }
  const runtime = createNodeRuntime();
  place("ca", residency, makeAuthority(residency, { days, runtime }), options, days);
  if (options.json === true) return;
  printMessage(
    `\nNext, for each node: moor cluster cert node NAME --dir ${options.dir}\n` +
      "ca.crt goes to every node. Keep ca.key here: whoever has it can become a node.",
  );
}

function makeNode(nodeId: string | undefined, options: CertOptions): void {
  const { dir, host = [], days = NODE_DAYS } = options;
  if (nodeId === undefined || !isNodeId(nodeId) || nodeId === "ca") {
    const got = nodeId === undefined ? "nothing" : JSON.stringify(nodeId);
    throw new ConfigError("NAME", got, "a node's id: a-z, 0-9 and -, up to 63, and not ca");
  }
  const authority = readAuthority(dir);
  const residency = readAuthorityResidency(authority.certificate);
  if (options.residency !== undefined && options.residency !== residency) {
    const expected = `${residency}, the residency of the authority in ${dir}`;
    throw new ConfigError("--residency", JSON.stringify(options.residency), expected);
  }
  const identity = { residency, nodeId };
  const runtime = createNodeRuntime();
  const made = makeNodeCertificate(authority, identity, host, { days, runtime });
  place(nodeId, encodeNodeUri(identity), made, options, days);
  if (options.json === true) return;
  const files = { caFile: "ca.crt", certFile: `${nodeId}.crt`, keyFile: `${nodeId}.key` };
  printMessage(`\nIn the node's configuration, "internal": {"tls": ${JSON.stringify(files)}}`);
}

/** Writes both files and says what was made. */
function place(
  name: string,
  subject: string,
  made: MadeCertificate,
  options: CertOptions,
  days: number,
): void {
  const { dir, force = false, json = false } = options;
  const certificate = path.join(dir, `${name}.crt`);
  const key = path.join(dir, `${name}.key`);
  makeFolder(dir);
  placeFiles(
    [
      { path: key, text: made.key.reveal(), mode: 0o600 },
      { path: certificate, text: made.certificate, mode: 0o644 },
    ],
    { isForced: force, forceOption: "--force" },
  );
  const expiresAt = new Date(createNodeRuntime().wallMs() + days * 24 * 60 * 60 * 1_000).toISOString();
  if (json) return printJson({ certificate, key, for: subject, expiresAt });
  printPairs([
    ["certificate", certificate],
    ["key", key],
    ["for", subject],
    ["expires", expiresAt.slice(0, 10)],
  ]);
}

function makeFolder(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ConfigError(
      "--dir",
      `${dir} (${errorCodeOf(error, "unusable")})`,
      "a folder that can be written to",
    );
  }
}

function readAuthority(dir: string): MadeCertificate {
  const read = (name: string): string => {
    const file = path.join(dir, name);
    try {
      return readFileSync(file, "utf8");
    } catch (error) {
      const expected = `the authority's files; moor cluster cert ca --dir ${dir} makes them`;
      throw new ConfigError("--dir", `${file} (${errorCodeOf(error, "unusable")})`, expected);
    }
  };
  return { certificate: read("ca.crt"), key: new Secret(read("ca.key")) };
}
