// vectors/sequences.json as a scripted service plays it: each step's wire bytes or fault.

import type { PollFault } from "@moor/protocol";
import { encodeAnswer, type ScriptedAnswer } from "@moor/testkit";
import { bytesOf, headerValueOf, type SequenceStep } from "../conformance/vector-files.ts";

export type EndingStep = Exclude<SequenceStep, { readonly do: "start" }>;

/** Whether the poll that ends so never reaches the service. */
export function endsBeforeService(step: EndingStep | undefined): boolean {
  return step?.do === "fault" && ["connect", "tls", "dns"].includes(step.fault);
}

/** What the service does to a poll that it has received. */
export function wireOf(step: EndingStep, closesAfter: boolean): ScriptedAnswer {
  if (step.do === "fault") return faultWire(step.fault);
  const { status, headers = [], body = "" } = step;
  if (status === undefined) return { kind: "hang" };
  const lines = headers.map(([name, value]) => [name, headerValueOf(value)] as const);
  const isCut = step.do === "cancel" || step.bodyIsCut === true;
  const closing = closesAfter ? [...lines, ["Connection", "close"] as const] : lines;
  const bytes = encodeAnswer({ kind: "answer", status, headers: closing, body: bytesOf(body) });
  if (!isCut) return { kind: "raw", bytes, keepOpen: !closesAfter };
  const announced = Buffer.from(
    bytes
      .toString("latin1")
      .replace(/Content-Length: (\d+)/, (_, length) => `Content-Length: ${Number(length) + 9}`),
    "latin1",
  );
  return step.do === "cancel" ? { kind: "hang", bytes: announced } : { kind: "raw", bytes: announced };
}

function faultWire(fault: PollFault): ScriptedAnswer {
  switch (fault) {
    case "connect":
    case "tls":
    case "dns":
    case "reset":
      return { kind: "reset" };
    case "bad-head":
      return { kind: "raw", bytes: "HTTP/9.z nonsense\r\n\r\n" };
    case "deadline":
      return { kind: "hang" };
    case "body-cut":
      return { kind: "raw", bytes: "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{" };
  }
}
