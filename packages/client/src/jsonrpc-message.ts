// What a JSON-RPC message is, told from its bytes without parsing it whole.
//
// Spec: T5, T6, T20, T22.
// I1  Bytes are only looked at: a message passes on exactly as it came. I2  Of duplicate members the last one counts, as
//     for JSON.parse.

import type { ScannedMember } from "@moor/protocol";

/** A message by its shape; `rawId` is the id's JSON text as written. */
export type JsonRpcShape =
  | { readonly kind: "request"; readonly rawId: string; readonly method: string }
  | { readonly kind: "notification"; readonly method: string }
  | { readonly kind: "response"; readonly rawId: string; readonly isError: boolean }
  | { readonly kind: "invalid" };

/** The shape of the message whose top-level members these are. */
export function jsonRpcShape(bytes: Uint8Array, members: readonly ScannedMember[]): JsonRpcShape {
  const method = members.findLast(({ key }) => key === "method");
  const id = members.findLast(({ key }) => key === "id");
  const rawId = id === undefined ? undefined : sliceText(bytes, id);
  if (method !== undefined) {
    if (method.kind !== "string") return { kind: "invalid" };
    const name = JSON.parse(sliceText(bytes, method)) as string;
    return rawId === undefined
      ? { kind: "notification", method: name }
      : { kind: "request", rawId, method: name };
  }
  const isError = members.some(({ key, kind }) => key === "error" && kind !== "null");
  const isResult = members.some(({ key }) => key === "result");
  if (rawId === undefined || (!isError && !isResult)) return { kind: "invalid" };
  return { kind: "response", rawId, isError };
}

/** Whether two ids, as JSON text, are the same value: `"a"` equals `"\u0061"`, `1` equals `1.0`, `1` is not `"1"`. */
export function isSameId(rawId: string, otherRawId: string): boolean {
  if (rawId === otherRawId) return true;
  const id: unknown = JSON.parse(rawId);
  const other: unknown = JSON.parse(otherRawId);
  if (typeof id === "number" && typeof other === "number") {
    // Beyond 2^53 unequal texts may round to one double.
    return id === other && Math.abs(id) <= Number.MAX_SAFE_INTEGER;
  }
  return typeof id === "string" && id === other;
}

/** The text of a member's value, as written. */
export function sliceText(bytes: Uint8Array, { value }: Pick<ScannedMember, "value">): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + value.start, value.end - value.start).toString("utf8");
}
