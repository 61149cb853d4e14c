// An MCP server without sockets: records calls and answers what a test says, when it says so.

import type {
  McpTarget,
  OnNotification,
  TargetAnswer,
  TargetReceipt,
  TargetRequest,
} from "../src/targets/mcp-target.ts";

export interface PendingCall {
  readonly request: TargetRequest;
  readonly onNotification: OnNotification;
  readonly signal: AbortSignal;
  readonly answer: (answer: TargetAnswer) => void;
}

export class FakeTarget implements McpTarget {
  readonly calls: PendingCall[] = [];

  call(request: TargetRequest, onNotification: OnNotification, signal: AbortSignal): Promise<TargetAnswer> {
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve({ kind: "aborted" }), { once: true });
      this.calls.push({ request, onNotification, signal, answer: resolve });
    });
  }

  notify(): Promise<TargetReceipt> {
    return Promise.resolve({ kind: "accepted", headers: {} });
  }

  terminate(): Promise<TargetReceipt> {
    return Promise.resolve({ kind: "accepted", headers: {} });
  }

  discover(): Promise<TargetAnswer> {
    return Promise.resolve({ kind: "aborted" });
  }

  probe(): Promise<boolean> {
    return Promise.resolve(true);
  }

  lastAnswerAtMs(): number | undefined {
    return undefined;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** A response with status 200. */
export function result(json = '{"jsonrpc":"2.0","id":1,"result":{}}'): TargetAnswer {
  return { kind: "response", status: 200, headers: {}, json: Buffer.from(json) };
}
