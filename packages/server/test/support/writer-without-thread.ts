// The writer on the test's own thread: the same work and the same messages, without the time a thread takes to start.

import { EventEmitter } from "node:events";
import type { WriterThread } from "../../src/directory/sqlite-writer.ts";
import { serveWriter, type WriterPort, type WriterSettings } from "../../src/directory/sqlite-writing.ts";

/** A writer that answers later in this thread. */
export function writerWithoutThread(settings: WriterSettings): WriterThread {
  const asker = new EventEmitter();
  const server = new EventEmitter();
  const port: WriterPort = {
    postMessage: (report) => setImmediate(() => asker.emit("message", report)),
    on: (event, listener) => server.on(event, listener),
    close: () => setImmediate(() => asker.emit("exit", 0)),
  };
  setImmediate(() => serveWriter(port, settings));
  return Object.assign(asker, {
    postMessage: (order: unknown) => void setImmediate(() => server.emit("message", order)),
    terminate: () => Promise.resolve(0),
  }) as unknown as WriterThread;
}
