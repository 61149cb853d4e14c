// `npm run check:docs`: what the documents say about files, requirements, errors, flags, logs and metrics is so.

import { findUnknownFlags } from "./docs/command-lines.ts";
import { findErrorTableProblems } from "./docs/error-docs.ts";
import { findLinkStateProblems } from "./docs/link-state-docs.ts";
import { findBrokenLinks } from "./docs/links.ts";
import { findNameProblems } from "./docs/log-and-metric-names.ts";
import { readMarkdownFiles } from "./docs/markdown-files.ts";
import { findMapProblems } from "./docs/the-map.ts";

const files = readMarkdownFiles();
const problems = [
  ...findBrokenLinks(files),
  ...findMapProblems(),
  ...findErrorTableProblems(),
  ...findLinkStateProblems(),
  ...findNameProblems(),
  ...findUnknownFlags(files),
];
for (const problem of problems) console.error(problem);
console.log(`${files.length} documents, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
