// Enrolment codes: how a box becomes a home's.
//
// Spec: L28.
// I1  A code makes one key a home's box key, before its end by the directory's own time, and then is gone.
// I2  A wrong try is counted before anybody hears of it; the last one ends the code.
// I3  Nobody but the home's own operator learns which of these a refusal was.

import { timingSafeEqual } from "node:crypto";
import { integerAt, textAt } from "../columns.ts";
import { done, refused, type MutationFunction, type MutationSteps } from "../mutation-steps.ts";
import { query } from "../statements.ts";
import { WRITE } from "../write-statements.ts";

/** How long a code is good. Milliseconds: ten minutes, to carry it to a box. */
export const ENROLMENT_MS = 600_000;
/** Wrong tries that end a code. Count: of 2^80 secrets, while a person may mistype. */
export const WRONG_TRIES_MAX = 5;

/** A code to be kept. */
export interface CreateEnrolment {
  readonly kind: "create-enrolment";
  /** First group of the code's text. */
  readonly id: string;
  readonly home: string;
  /** SHA-256 of the code's text as it is normalised, hexadecimal. */
  readonly secretHash: string;
}

/** A code to be redeemed. */
export interface RedeemEnrolment {
  readonly kind: "redeem-enrolment";
  readonly id: string;
  readonly secretHash: string;
  readonly boxKey: string;
}

/** Gives the end of the code as a row. */
export const createEnrolment: MutationFunction<CreateEnrolment> = function* (input, ledger): MutationSteps {
  const { id, home, secretHash } = input;
  if ((yield query(WRITE.home, [home])).length === 0) return refused("home_not_found", "no such home");
  yield query(WRITE.deleteHomeEnrolments, [home]);
  yield query(WRITE.deleteExpiredEnrolments, [ledger.wallMs]);
  const expiresAtMs = ledger.wallMs + ENROLMENT_MS;
  yield query(WRITE.insertEnrolment, [id, home, secretHash, expiresAtMs]);
  return done([{ expires_at_ms: expiresAtMs }]);
};

/** Gives the home as a row; none when it is refused: what a refusal counts must be kept (I2). */
export const redeemEnrolment: MutationFunction<RedeemEnrolment> = function* (input, ledger): MutationSteps {
  const { id, secretHash, boxKey } = input;
  const [code] = yield query(WRITE.enrolment, [id]);
  if (code === undefined) return done();
  if (integerAt(code, "expires_at_ms") <= ledger.wallMs) {
    yield query(WRITE.deleteEnrolment, [id]);
    return done();
  }
  if (!isSameDigest(textAt(code, "secret_hash"), secretHash)) {
    const isLast = integerAt(code, "wrong_tries") + 1 >= WRONG_TRIES_MAX;
    yield query(isLast ? WRITE.deleteEnrolment : WRITE.countWrongTry, [id]);
    return done();
  }
  const home = textAt(code, "home");
  yield query(WRITE.deleteEnrolment, [id]);
  const set = yield query(WRITE.setBoxKey, [home, boxKey]);
  if (set.length === 0) return done();
  ledger.change("home", home);
  return done([{ home }]);
};

/** Compares in time that does not depend on where they differ. */
function isSameDigest(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left, "hex"), Buffer.from(right, "hex")];
  return one.length === other.length && timingSafeEqual(one, other);
}
