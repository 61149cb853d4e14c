// Operator routes of homes: what is known of them, their tokens, and the code that makes a box theirs.
//
// Spec: L7, L22, L26, L28.   I1  The text of a token or a code is in the answer that makes it and in no other.

import type { HomeId } from "@moor/protocol";
import { homeBlockers } from "../directory/move-blockers.ts";
import { parseHomeBody, parseHomeFields, parseTokenBody, readHomeId } from "./home-bodies.ts";
import { homeLiveJson } from "./home-live-json.ts";
import { createdTokenJson, enrolmentJson, homeDetailJson, homeJson, tokenJson } from "./home-json.ts";
import { createdTunnelJson } from "./operator-json.ts";
import {
  audit,
  change,
  ok,
  readPage,
  type Handler,
  type OperatorApiOptions,
  type Route,
} from "./operator-route.ts";

/** `/v1/homes`, `/v1/homes/{id}` and what is below. */
export function homeRoutes(options: OperatorApiOptions): readonly Route[] {
  return [
    { path: /^\/v1\/homes$/, methods: { GET: listHomes(options), POST: createHome(options) } },
    {
      path: /^\/v1\/homes\/([^/]+)$/,
      methods: { GET: showHome(options), POST: updateHome(options), DELETE: deleteHome(options) },
    },
    {
      path: /^\/v1\/homes\/([^/]+)\/tokens$/,
      methods: { GET: listTokens(options), POST: createToken(options) },
    },
    { path: /^\/v1\/homes\/([^/]+)\/enrolment$/, methods: { POST: createEnrolment(options) } },
  ];
}

function listHomes({ directory, publicUrl }: OperatorApiOptions): Handler {
  return async ({ query }) => {
    const page = await directory.listHomes(readPage(query));
    const url = publicUrl();
    return ok({ homes: page.items.map((home) => homeJson(home, url)), next: page.next });
  };
}

function createHome(options: OperatorApiOptions): Handler {
  const { directory, publicUrl } = options;
  return async (request) => {
    const { home, tunnel } = await change(options, directory.createHome(parseHomeBody(request.body)));
    audit(options, "home-created", request, { home: home.id, tunnel: home.tunnel ?? "none" });
    const created = tunnel === null ? null : createdTunnelJson(tunnel, publicUrl());
    return { status: 201, json: { ...homeJson(home, publicUrl()), created_tunnel: created } };
  };
}

function showHome({ directory, replica, runtime, publicUrl, homeStatus }: OperatorApiOptions): Handler {
  return async (_request, id) => {
    const home = await directory.getHome(readHomeId(id, "id"));
    const live = homeLiveJson(await homeStatus(home.id), replica.nodes());
    const apps = replica.homeApps(home.id);
    const blockers = homeBlockers(home, apps, runtime.wallMs());
    return ok(homeDetailJson(home, publicUrl(), apps, blockers, live));
  };
}

function updateHome(options: OperatorApiOptions): Handler {
  const { directory, publicUrl } = options;
  return async (request, id) => {
    const fields = parseHomeFields(request.body);
    const home = await change(options, directory.updateHome(readHomeId(id, "id"), fields));
    audit(options, "home-updated", request, { home: home.id, fields: Object.keys(fields).join(",") });
    return ok(homeJson(home, publicUrl()));
  };
}

function deleteHome(options: OperatorApiOptions): Handler {
  const { directory } = options;
  return async (request, text) => {
    const id = readHomeId(text, "id");
    const { tunnel } = await directory.getHome(id);
    await change(options, directory.deleteHome(id));
    audit(options, "home-deleted", request, { home: id });
    return ok({ id, deleted: true, tunnel });
  };
}

function listTokens({ directory }: OperatorApiOptions): Handler {
  return async ({ query }, id) => {
    const home = await existing(id, directory);
    const tokens = await directory.listKeys({ ...readPage(query), home });
    return ok({ tokens: tokens.items.map(tokenJson), next: tokens.next });
  };
}

function createToken(options: OperatorApiOptions): Handler {
  const { directory } = options;
  return async (request, id) => {
    const input = { home: readHomeId(id, "id"), ...parseTokenBody(request.body) };
    const { record, token } = await change(options, directory.createHomeToken(input));
    const { kind, tenant: home } = record;
    audit(options, "home-token-created", request, { keyId: record.id, kind, home });
    return { status: 201, json: createdTokenJson(record, token) };
  };
}

function createEnrolment(options: OperatorApiOptions): Handler {
  const { directory } = options;
  return async (request, id) => {
    const home = readHomeId(id, "id");
    const { code, expiresAtMs } = await change(options, directory.createEnrolment(home));
    audit(options, "enrolment-created", request, { home });
    return { status: 201, json: enrolmentJson(home, code, expiresAtMs) };
  };
}

/** The id of a home that there is. Rejects with `home_not_found`. */
async function existing(id: string, directory: OperatorApiOptions["directory"]): Promise<HomeId> {
  return (await directory.getHome(readHomeId(id, "id"))).id;
}
