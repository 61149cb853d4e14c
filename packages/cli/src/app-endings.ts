// What `moor app` makes of the endings of commands and looks: an answer on stdout, or an error with its exit code.
//
// Spec: L20, L31, L33, L34.
// I1  stdout has a result, or with --json every outcome; nothing else. I2  Results are printed byte for byte.

import type { NowEnding, OnceEnding } from "@moor/client";
import { LINK_TROUBLE } from "@moor/protocol";
import { RefusedError, UnknownOutcomeError, UnreachableError } from "./exit-code.ts";
import { printAnswer, printJson, printMessage } from "./output.ts";

/** How answers are wanted. */
export interface AnswerFlags {
  readonly json?: true;
}

/** Prints a result; throws for every other ending what its exit code is made of. */
export function tellEnding(ending: OnceEnding, id: string, flags: AnswerFlags): void {
  const isResult = ending.kind === "result";
  if (flags.json === true) {
    const data = isResult ? `,"data":${ending.data.text}` : "";
    printAnswer(`{"id":"${id}","outcome":"${ending.kind}"${data}}`);
  }
  switch (ending.kind) {
    case "result":
      if (flags.json !== true) printAnswer(ending.data.text);
      return;
    case "not_delivered":
      throw new RefusedError("command_not_delivered", "the command did not reach its box");
    case "expired":
      throw new RefusedError("command_expired", "the command's time passed before its box took it");
    case "unknown":
      throw new UnknownOutcomeError(`the outcome is unknown; ask again with --id ${id}`);
    case "refused":
      throw refusedOneShot(ending.why);
    case "unreachable":
      throw new UnreachableError(LINK_TROUBLE[ending.why].summary, "Check --endpoint and the network.");
  }
}

/** Prints a snapshot; throws where there is none. */
export function tellSnapshot(ending: NowEnding, { json }: AnswerFlags): void {
  switch (ending.kind) {
    case "snapshot": {
      const { data, ageMs, etag } = ending;
      if (json !== true) return printAnswer(data.text);
      const head = JSON.stringify({ outcome: "snapshot", ageMs, etag });
      return printAnswer(`${head.slice(0, -1)},"data":${data.text}}`);
    }
    case "not-modified":
      if (json === true) printJson({ outcome: "not-modified" });
      else printMessage("not modified");
      return;
    case "unavailable":
      throw new RefusedError("now_unavailable", "the home's box has left no snapshot");
    case "refused":
      throw refusedOneShot(ending.why);
    case "unreachable":
      throw new UnreachableError(LINK_TROUBLE[ending.why].summary, "Check --endpoint and the network.");
  }
}

/** What a refusal means, as an error of exit code 1. */
export function refusedOneShot(why: Extract<OnceEnding, { readonly kind: "refused" }>["why"]): RefusedError {
  switch (why) {
    case "auth":
      return new RefusedError(
        "unauthorized",
        "the service does not accept the token (`now` takes one of kind extension, all else one of kind app)",
      );
    case "wrong-shard":
      return new RefusedError(
        "wrong_shard",
        "the service is not known by this host, or its shards do not agree on where the home is: check --endpoint, else try again",
      );
    case "bad-request":
      return new RefusedError("invalid_request", "the service does not take this command");
  }
}
