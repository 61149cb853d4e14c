// What operators send about homes: JSON bodies as typed input.
//
// Spec: L7, L26.   A refusal names the field, never its value.

import { ProtocolError, type HomeId } from "@moor/protocol";
import { z } from "zod";
import {
  parseHomeTenant,
  type HomeFields,
  type HomeInput,
  type HomeTokenKind,
} from "../directory/directory.ts";
import { parseBody, readTunnelId } from "./operator-bodies.ts";

const createBody = z.object({
  id: z.string().optional(),
  label: z.string().optional(),
  tunnel: z.string().optional(),
});

const updateBody = z.object({ label: z.string().optional(), tunnel: z.string().nullable().optional() });

const tokenBody = z.object({ kind: z.enum(["app", "extension"]), label: z.string().optional() });

/** A body of `POST /v1/homes`. */
export function parseHomeBody(body: Uint8Array): HomeInput {
  const { id, label, tunnel } = parseBody(createBody, body);
  return {
    ...(id === undefined ? {} : { id: readHomeId(id, "id") }),
    ...(label === undefined ? {} : { label }),
    ...(tunnel === undefined ? {} : { tunnel: tunnel === "new" ? tunnel : readTunnelId(tunnel, "tunnel") }),
  };
}

/** A body of `POST /v1/homes/{id}`: the fields present. */
export function parseHomeFields(body: Uint8Array): HomeFields {
  const { label, tunnel } = parseBody(updateBody, body);
  return {
    ...(label === undefined ? {} : { label }),
    ...(tunnel === undefined ? {} : { tunnel: tunnel === null ? null : readTunnelId(tunnel, "tunnel") }),
  };
}

/** A body of `POST /v1/homes/{id}/tokens`. */
export function parseTokenBody(body: Uint8Array): { readonly kind: HomeTokenKind; readonly label?: string } {
  const { kind, label } = parseBody(tokenBody, body);
  return label === undefined ? { kind } : { kind, label };
}

/** A home's id, or `invalid_request`. */
export function readHomeId(text: string, param: string): HomeId {
  const id = parseHomeTenant(text);
  if (id !== undefined) return id;
  const message = `${param} is 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit, and not with tunnel_`;
  throw new ProtocolError("invalid_request", { param, message });
}
