#!/usr/bin/env node
// The moor command's first step: refuses a Node that cannot run it, then imports the program.
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `moor needs Node 24 or newer; this is Node ${process.versions.node}. Inside the repository, run it as "npx moor".\n`,
  );
  process.exit(2);
}
const { main } = await import("../src/main.ts");
await main(process.argv.slice(2));
