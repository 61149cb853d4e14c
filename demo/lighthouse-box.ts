// What the demo's box does with a command: writes it into its ledger, and says so. One process for each command, as
// `moor box --exec` starts them.
// Usage: node lighthouse-box.ts LEDGER < COMMAND > RESULT

import { appendFileSync, readFileSync } from "node:fs";

const [ledger = ""] = process.argv.slice(2);
const { flash } = JSON.parse(readFileSync(0, "utf8")) as { flash: number };
appendFileSync(ledger, `${flash}\n`);
process.stdout.write(JSON.stringify({ flashed: flash }));
