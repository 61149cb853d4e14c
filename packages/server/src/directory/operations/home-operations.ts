// Homes, their tokens and the hellos seen at them, as the directory offers them.
//
// Spec: L7, L22, L26.
// I1  Tokens are minted here, returned once and stored as SHA-256 only.
// I2  No home's id looks like a tunnel's: the two never meet in placements, moves or paths.

import { parseHomeId, ProtocolError, type HomeId } from "@moor/protocol";
import { invariant, randomHex, type Runtime } from "@moor/runtime";
import { parseHomeTenant, type Directory, type HomeInput } from "../directory.ts";
import { mintHomeToken } from "../keys.ts";
import { SIGHTINGS_PER_WRITE_MAX } from "../mutations/home-sightings.ts";
import { assertKeyLabel } from "../tunnel-input.ts";
import type { DirectoryParts } from "./directory-parts.ts";
import { newKey, newTunnel } from "./tunnel-operations.ts";

type HomeOperations = Pick<
  Directory,
  | "createHome"
  | "updateHome"
  | "deleteHome"
  | "getHome"
  | "listHomes"
  | "createHomeToken"
  | "recordHomeSightings"
>;

/** Operations on homes. */
export function homeOperations(parts: DirectoryParts): HomeOperations {
  const { replica, runtime } = parts;
  return {
    async createHome(input) {
      const { id = mintHomeId(runtime), label = "", tunnel: asked } = input;
      assertKeyLabel(label);
      assertHomeId(id);
      const made = asked === "new" ? newTunnel(tunnelOf(id, input), parts) : undefined;
      const tunnel = made?.mutation ?? (asked === "new" ? null : (asked ?? null));
      await parts.change({ kind: "create-home", id, label, tunnel });
      return { home: replica.mustHaveHome(id), tunnel: made?.created() ?? null };
    },
    async updateHome(id, fields) {
      if (fields.label !== undefined) assertKeyLabel(fields.label);
      await parts.change({ kind: "update-home", id, ...fields });
      return replica.mustHaveHome(id);
    },
    async deleteHome(id) {
      await parts.change({ kind: "delete-home", id });
    },
    getHome: async (id) => (await parts.upToDate()).mustHaveHome(id),
    listHomes: async (page) => (await parts.upToDate()).listHomes(page),
    async createHomeToken({ home, kind, label = "" }) {
      assertKeyLabel(label);
      const minted = mintHomeToken(home, kind, runtime);
      const key = newKey(kind, minted, label, runtime);
      await parts.change({ kind: "create-home-token", home, key });
      const record = replica.key(key.id);
      if (record === undefined) {
        throw new ProtocolError("conflict", { message: "the token was deleted meanwhile" });
      }
      return { record, token: minted.key };
    },
    async recordHomeSightings(sightings) {
      if (sightings.length > SIGHTINGS_PER_WRITE_MAX) {
        const message = `at most ${SIGHTINGS_PER_WRITE_MAX} hellos are noted at once`;
        throw new ProtocolError("invalid_request", { param: "sightings", message });
      }
      if (sightings.length > 0) await parts.change({ kind: "record-home-sightings", sightings });
    },
  };
}

/** `home_` and 16 hexadecimal digits. Spec L28. */
function mintHomeId(runtime: Runtime): HomeId {
  const id = parseHomeId(`home_${randomHex(runtime, 8)}`);
  invariant(id !== undefined, "D16 a minted home id is well formed");
  return id;
}

function assertHomeId(id: HomeId): void {
  if (parseHomeTenant(id) !== undefined) return;
  throw new ProtocolError("invalid_request", {
    param: "id",
    message: "a home's id does not begin with tunnel_",
  });
}

/** The tunnel made with a home is called like it. */
function tunnelOf(id: HomeId, { label }: HomeInput) {
  return { name: `home ${id}`, ...(label === undefined ? {} : { description: label }) };
}
