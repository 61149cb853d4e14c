// Operator routes of single moves and of the record of all moves.
//
// Design: "Moves".   I1  An answer says which: moved, refused, or that nobody could be asked, with the id to ask by.

import { ProtocolError } from "@moor/protocol";
import { moveJson } from "./fleet-json.ts";
import { parseMoveBody, readTenantId } from "./operator-bodies.ts";
import {
  audit,
  change,
  ok,
  readPage,
  type Handler,
  type OperatorApiOptions,
  type OperatorRequest,
  type Route,
} from "./operator-route.ts";

/** `/v1/moves` and `/v1/moves/{id}`. */
export function moveRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory } = options;
  const list: Handler = async ({ query }) => {
    const text = query.get("tenant");
    const page = readPage(query);
    const asked = text === null ? page : { ...page, tenant: readTenantId(text, "tenant") };
    const moves = await directory.listMoves(asked);
    return ok({ moves: moves.items.map(moveJson), next: moves.next });
  };
  const show: Handler = async (_request, id) => {
    const move = await directory.findMove(id);
    if (move === undefined) throw new ProtocolError("not_found", { message: "no such move was made" });
    return ok(moveJson(move));
  };
  return [
    { path: /^\/v1\/moves$/, methods: { GET: list, POST: (request) => makeMove(options, request) } },
    { path: /^\/v1\/moves\/(move_[0-9a-f]{32})$/, methods: { GET: show } },
  ];
}

async function makeMove(options: OperatorApiOptions, request: OperatorRequest) {
  const { tenant, to, reason = "", isForced } = parseMoveBody(request.body);
  const { actor } = request;
  const { move, isAcked } = await change(options, commit(options, { tenant, to, actor, reason, isForced }));
  const { id, from, revision } = move;
  audit(options, "move-ordered", request, { move: id, tenant, from, to, revision, reason, isForced });
  return ok({ ...moveJson(move), acked: isAcked });
}

async function commit({ mover }: OperatorApiOptions, order: Parameters<typeof mover.move>[0]) {
  const outcome = await mover.move(order);
  switch (outcome.kind) {
    case "moved":
      return outcome;
    case "refused":
      throw outcome.error;
    case "unknown-outcome": {
      const { moveId } = outcome;
      const message = `the directory was lost in the middle: whether ${moveId} was made is told once it is back`;
      throw new ProtocolError("directory_unavailable", {
        message,
        data: { outcome: "unknown", move: moveId },
      });
    }
  }
}
