// vectors/sequences.json as a scripted service plays it: each step's wire bytes or fault.

import { readFileSync } from "node:fs";
import { encodeAnswer, type ScriptedAnswer } from "@moor/testkit";

type Text = string | readonly (string | { readonly repeat: string; readonly count: number })[];

interface Expectation {
  readonly outcome: "success" | "correction" | "destination-failure" | "ordinary-error" | "cancelled";
  readonly delayMs: number | null;
  readonly ready: boolean;
  readonly commands?: number;
}

interface Answered {
  readonly poll: number;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: Text])[];
  readonly body: Text;
  readonly bodyIsCut?: boolean;
  readonly random?: number;
  readonly expect: Expectation;
}

interface Faulted {
  readonly poll: number;
  readonly fault: "connect" | "tls" | "dns" | "reset" | "bad-head" | "deadline" | "body-cut";
  readonly random?: number;
  readonly expect: Expectation;
}

export type EndingStep =
  | ({ readonly do: "answer" } & Answered)
  | ({ readonly do: "fault" } & Faulted)
  | ({ readonly do: "cancel" } & Pick<Faulted, "poll" | "expect" | "random"> &
      Partial<Pick<Answered, "status" | "headers" | "body">>);

export type Step =
  | { readonly do: "start"; readonly poll: number; readonly sends: string | null }
  | EndingStep;

export interface Sequence {
  readonly id: string;
  readonly overlapping: boolean;
  readonly steps: readonly Step[];
}

/** All sequences of the vectors. */
export function readSequences(): readonly Sequence[] {
  const file = new URL("../../vectors/sequences.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { sequences: readonly Sequence[] }).sequences;
}

/** Whether the poll that ends so never reaches the service. */
export function endsBeforeService(step: EndingStep | undefined): boolean {
  return step?.do === "fault" && ["connect", "tls", "dns"].includes(step.fault);
}

/** What the service does to a poll that it has received. */
export function wireOf(step: EndingStep, closesAfter: boolean): ScriptedAnswer {
  if (step.do === "fault") return faultWire(step.fault);
  const { status, headers = [], body = "" } = step;
  if (status === undefined) return { kind: "hang" };
  const lines = headers.map(([name, value]) => [name, textOf(value)] as const);
  const isCut = step.do === "cancel" || step.bodyIsCut === true;
  const closing = closesAfter ? [...lines, ["Connection", "close"] as const] : lines;
  const bytes = encodeAnswer({ kind: "answer", status, headers: closing, body: textOf(body) });
  if (!isCut) return { kind: "raw", bytes, keepOpen: !closesAfter };
  const announced = Buffer.from(
    bytes
      .toString("latin1")
      .replace(/Content-Length: (\d+)/, (_, length) => `Content-Length: ${Number(length) + 9}`),
    "latin1",
  );
  return step.do === "cancel" ? { kind: "hang", bytes: announced } : { kind: "raw", bytes: announced };
}

function faultWire(fault: Faulted["fault"]): ScriptedAnswer {
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

function textOf(text: Text): string {
  if (typeof text === "string") return text;
  return text.map((part) => (typeof part === "string" ? part : part.repeat.repeat(part.count))).join("");
}
