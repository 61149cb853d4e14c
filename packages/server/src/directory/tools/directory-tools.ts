// What the package offers as `@moor/server/directory-tools`: the operator's tools on a directory, without a node.

export type { DirectoryCheck } from "../directory.ts";
export type { MigrationReport } from "../postgres-schema.ts";
export { readWatermark, type Watermark } from "../watermark.ts";
export { checkDirectory } from "./check.ts";
export { exportDirectory } from "./export.ts";
export { fenceDirectory, type FenceReport } from "./fence.ts";
export { importDirectory, verifyExport, type VerifiedExport } from "./import.ts";
export { migrateDirectory, openToolStore, type ToolOptions, type ToolStore } from "./tool-store.ts";
