// One call of a fleet's caller: what it asks, how it ended, and the bytes of both on the wire.
//
// Spec: T9, T11.
// I1  A call has a name of its own, which is its JSON-RPC id, its progress token and its argument: an answer or a
//     notification that belongs to another call is told apart whatever it claims to be.

/** How a caller takes its answer: JSON alone, an event stream with progress, or through an official SDK client. */
export type CallForm = "json" | "stream" | "sdk";

/** How a call ended, as its caller saw it. */
export type CallEnding =
  /** Status 200 and the answer of this very call; `progress`: the values of its notifications, in order of arrival. */
  | { readonly kind: "answered"; readonly progress: readonly number[] }
  /** Another status, or a JSON-RPC error; `code` is what the body says. */
  | { readonly kind: "refused"; readonly status: number; readonly code: string }
  /** Status 200 with an answer or notification that is not this call's. */
  | { readonly kind: "foreign" }
  /** No complete answer: the connection failed or the caller's own patience ended. */
  | { readonly kind: "broken"; readonly fault: string };

/** A call that has ended. */
export interface CallRecord {
  readonly name: string;
  readonly tunnel: string;
  readonly form: CallForm;
  /** Milliseconds from the first byte sent to the last one received. */
  readonly latencyMs: number;
  readonly ending: CallEnding;
}

/** The body of the call `name`; with a progress token when it wants notifications. */
export function encodeCall(name: string, form: CallForm): string {
  const meta = form === "json" ? "" : `,"_meta":{"progressToken":"${name}"}`;
  const params = `{"name":"record","arguments":{"call":"${name}"}${meta}}`;
  return `{"jsonrpc":"2.0","id":"${name}","method":"tools/call","params":${params}}`;
}

/** What an answer means to the caller of `name`. */
export function readAnswer(name: string, status: number, contentType: string, body: string): CallEnding {
  if (status !== 200) return { kind: "refused", status, code: errorCode(parseJson(body)) };
  const isStream = contentType.startsWith("text/event-stream");
  const messages = isStream ? eventsOf(body).map(parseJson) : [parseJson(body)];
  const final = messages.pop();
  if (final?.error !== undefined) return { kind: "refused", status, code: errorCode(final) };
  const isOwn = messages.every((message) => message?.params?.progressToken === name);
  if (!isOwn || final?.id !== name || final.result?.content?.[0]?.text !== name) return { kind: "foreign" };
  return { kind: "answered", progress: messages.map((message) => message?.params?.progress ?? Number.NaN) };
}

interface Message {
  readonly id?: unknown;
  readonly params?: { readonly progressToken?: unknown; readonly progress?: number };
  readonly result?: { readonly content?: readonly { readonly text?: unknown }[] };
  readonly error?: {
    readonly code?: string | number;
    readonly data?: { readonly code?: string; readonly outcome?: string };
  };
}

function parseJson(text: string): Message | undefined {
  try {
    return JSON.parse(text) as Message;
  } catch {
    return undefined;
  }
}

/** The data of each event; comments are left out. */
function eventsOf(body: string): string[] {
  return body.split("\n\n").flatMap((event) => {
    const data = event.split("\n").filter((line) => line.startsWith("data: "));
    return data.length === 0 ? [] : [data.map((line) => line.slice("data: ".length)).join("\n")];
  });
}

function errorCode(message: Message | undefined): string {
  const error = message?.error;
  return String(error?.data?.code ?? error?.code ?? "no readable body");
}
