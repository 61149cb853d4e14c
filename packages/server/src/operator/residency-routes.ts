// Operator routes of what a whole residency shares: the switch of corrections and the token keys.
//
// Spec: R23, R25.   I1  No answer has a part of a token key's bytes.

import { tokenKeyJson } from "./fleet-json.ts";
import { parseCorrectionsBody, parseReasonBody } from "./operator-bodies.ts";
import {
  audit,
  change,
  ok,
  orderOf,
  type Handler,
  type OperatorApiOptions,
  type Route,
} from "./operator-route.ts";

/** `/v1/corrections`, `/v1/token-keys` and what is below. */
export function residencyRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory } = options;
  const addKey: Handler = async (request) => {
    const reason = parseReasonBody(request.body);
    const key = await change(options, directory.addTokenKey(orderOf(request, reason)));
    audit(options, "token-key-added", request, { tokenKey: key.id, reason });
    return { status: 201, json: tokenKeyJson(key) };
  };
  const promoteKey: Handler = async (request, id) => {
    const reason = parseReasonBody(request.body);
    const key = await change(options, directory.promoteTokenKey(id, orderOf(request, reason)));
    audit(options, "token-key-promoted", request, { tokenKey: id, reason });
    return ok(tokenKeyJson(key));
  };
  const retireKey: Handler = async (request, id) => {
    const reason = parseReasonBody(request.body);
    await change(options, directory.retireTokenKey(id, orderOf(request, reason)));
    audit(options, "token-key-retired", request, { tokenKey: id, reason });
    return ok({ id, retired: true });
  };
  const listKeys: Handler = async () => {
    const keys = await directory.listTokenKeys();
    return ok({ token_keys: keys.map(tokenKeyJson), next: null });
  };
  return [
    ...correctionRoutes(options),
    { path: /^\/v1\/token-keys$/, methods: { GET: listKeys, POST: addKey } },
    { path: /^\/v1\/token-keys\/([^/]+)$/, methods: { DELETE: retireKey } },
    { path: /^\/v1\/token-keys\/([^/]+)\/promote$/, methods: { POST: promoteKey } },
  ];
}

function correctionRoutes(options: OperatorApiOptions): readonly Route[] {
  const { directory, replica } = options;
  const show = () => ok({ residency: replica.residency(), on: replica.correctionsOn() });
  const set: Handler = async (request) => {
    const { on, reason } = parseCorrectionsBody(request.body);
    await change(options, directory.setCorrections(on, orderOf(request, reason)));
    audit(options, "corrections-switched", request, { isOn: on, reason });
    return show();
  };
  return [{ path: /^\/v1\/corrections$/, methods: { GET: show, PUT: set } }];
}
