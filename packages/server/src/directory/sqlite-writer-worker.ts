// The thread that owns the writing connection.
//
// An fsync takes milliseconds; on this thread it delays no call and no poll. What it imports is loaded at each start, so
// it imports no package at run time.

import { parentPort, workerData } from "node:worker_threads";
import { serveWriter, type WriterSettings } from "./sqlite-writing.ts";

if (parentPort === null) throw new Error("the writer runs as a worker thread");
serveWriter(parentPort, workerData as WriterSettings);
