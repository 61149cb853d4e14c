// How many bytes a request's body is charged in the node's budget before it is read.

import type { HttpExchange } from "../http/http-exchange.ts";

/** The declared length, or the largest allowed one for a body that declares none. Bytes. */
export function bodyReservation(exchange: HttpExchange, bytesMax: number): number {
  const declared = exchange.header("content-length");
  if (declared !== undefined) return Math.min(Number(declared), bytesMax);
  return exchange.header("transfer-encoding") === undefined ? 0 : bytesMax;
}
