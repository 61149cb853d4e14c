// Enrolment of boxes, as the directory offers it.
//
// Spec: L28.
// I1  A code is minted here, returned once and stored as SHA-256 only.
// I2  A try that finds no code costs a read: nobody who guesses takes the time of the directory's writer.

import { isProtocolError, parseHomeId, parseNonce, type HomeId } from "@moor/protocol";
import { invariant, type Secret } from "@moor/runtime";
import { integerAt, textAt } from "../columns.ts";
import type { Directory } from "../directory.ts";
import { mintEnrolmentCode, parseEnrolmentCode } from "../enrolment-code.ts";
import { query, READ } from "../statements.ts";
import type { DirectoryParts } from "./directory-parts.ts";

type EnrolmentOperations = Pick<Directory, "createEnrolment" | "redeemEnrolment">;

/** Codes minted until one has a free row. Count: rows are one in a million each, and few at a time. */
const MINTED_MAX = 5;

/** Operations on enrolment codes. */
export function enrolmentOperations(parts: DirectoryParts): EnrolmentOperations {
  return {
    async createEnrolment(home) {
      for (let minted = 1; ; minted += 1) {
        try {
          return await createCode(home, parts);
        } catch (error) {
          // Another home's code has the row.
          if (!isProtocolError(error) || error.code !== "conflict" || minted === MINTED_MAX) throw error;
        }
      }
    },
    async redeemEnrolment(text, publicKey) {
      const code = parseEnrolmentCode(text);
      const boxKey = parseNonce(publicKey);
      if (code === undefined || boxKey === undefined) return { kind: "refused" };
      const found = await parts.store.read(query(READ.enrolment, [code.id]));
      if (found.length === 0) return { kind: "refused" };
      const [row] = await parts.change({ kind: "redeem-enrolment", ...code, boxKey });
      if (row === undefined) return { kind: "refused" };
      const home = parseHomeId(textAt(row, "home"));
      invariant(home !== undefined, "D17 a code is of a home");
      const keys = parts.replica.listServiceKeys();
      return { kind: "ok", home, serviceKeys: keys.map(({ publicKey: key }) => key) };
    },
  };
}

async function createCode(
  home: HomeId,
  parts: DirectoryParts,
): Promise<{ readonly code: Secret; readonly expiresAtMs: number }> {
  const { code, stored } = mintEnrolmentCode(parts.runtime);
  const [row] = await parts.change({ kind: "create-enrolment", home, ...stored });
  return { code, expiresAtMs: integerAt(row, "expires_at_ms") };
}
