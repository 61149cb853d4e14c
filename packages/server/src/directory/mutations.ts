// Every change that can be asked of the directory's store, and the function that makes it (mutations/).

import type { Ledger } from "./ledger.ts";
import { setDefaultShard, type SetDefaultShard } from "./mutations/default-shard.ts";
import { createEnrolment, redeemEnrolment } from "./mutations/enrolment-mutations.ts";
import type { CreateEnrolment, RedeemEnrolment } from "./mutations/enrolment-mutations.ts";
import { createHome, createHomeToken, deleteHome, updateHome } from "./mutations/home-mutations.ts";
import type { CreateHome, CreateHomeToken, DeleteHome, UpdateHome } from "./mutations/home-mutations.ts";
import { recordHomeSightings, type RecordHomeSightings } from "./mutations/home-sightings.ts";
import { addServiceKey, mintServiceKey, retireServiceKey } from "./mutations/service-key-mutations.ts";
import type { AddServiceKey, MintServiceKey, RetireServiceKey } from "./mutations/service-key-mutations.ts";
import type { MutationFunction, MutationSteps } from "./mutation-steps.ts";
import { abortJob, createJob, updateJob } from "./mutations/job-mutations.ts";
import type { AbortJob, CreateJob, UpdateJob } from "./mutations/job-mutations.ts";
import { createKey, revokeKey, type CreateKey, type RevokeKey } from "./mutations/key-mutations.ts";
import { moveTenants, type MoveTenants } from "./mutations/move-mutations.ts";
import { leaveNode, placeDropped, registerNode, renewLeases, tryLead } from "./mutations/node-mutations.ts";
import type {
  LeaveNode,
  PlaceDropped,
  RegisterNode,
  RenewLeases,
  TryLead,
} from "./mutations/node-mutations.ts";
import {
  foundResidency,
  importResidency,
  importRows,
  raiseRevision,
  restampPlacements,
  setCorrections,
  setIncarnation,
} from "./mutations/residency-mutations.ts";
import type {
  FoundResidency,
  ImportResidency,
  ImportRows,
  RaiseRevision,
  RestampPlacements,
  SetCorrections,
  SetIncarnation,
} from "./mutations/residency-mutations.ts";
import {
  addTokenKey,
  promoteTokenKey,
  resealTokenKeys,
  retireTokenKey,
} from "./mutations/token-key-mutations.ts";
import type {
  AddTokenKey,
  PromoteTokenKey,
  ResealTokenKeys,
  RetireTokenKey,
} from "./mutations/token-key-mutations.ts";
import { createTunnel, deleteTunnel, recordSeen, updateTunnel } from "./mutations/tunnel-mutations.ts";
import type { CreateTunnel, DeleteTunnel, RecordSeen, UpdateTunnel } from "./mutations/tunnel-mutations.ts";

/** A change asked of the store. */
export type Mutation =
  | CreateTunnel
  | UpdateTunnel
  | DeleteTunnel
  | RecordSeen
  | CreateKey
  | RevokeKey
  | RegisterNode
  | LeaveNode
  | PlaceDropped
  | RenewLeases
  | TryLead
  | MoveTenants
  | CreateJob
  | UpdateJob
  | AbortJob
  | FoundResidency
  | SetCorrections
  | RaiseRevision
  | RestampPlacements
  | SetIncarnation
  | ImportRows
  | ImportResidency
  | AddTokenKey
  | PromoteTokenKey
  | RetireTokenKey
  | ResealTokenKeys
  | CreateHome
  | UpdateHome
  | DeleteHome
  | CreateHomeToken
  | RecordHomeSightings
  | CreateEnrolment
  | RedeemEnrolment
  | MintServiceKey
  | AddServiceKey
  | RetireServiceKey
  | SetDefaultShard;

type Of<Kind extends Mutation["kind"]> = Extract<Mutation, { kind: Kind }>;

/** One function per kind of mutation. */
const FUNCTIONS: { readonly [Kind in Mutation["kind"]]: MutationFunction<Of<Kind>> } = {
  "create-tunnel": createTunnel,
  "update-tunnel": updateTunnel,
  "delete-tunnel": deleteTunnel,
  "record-seen": recordSeen,
  "create-key": createKey,
  "revoke-key": revokeKey,
  "register-node": registerNode,
  "leave-node": leaveNode,
  "place-dropped": placeDropped,
  "renew-leases": renewLeases,
  "try-lead": tryLead,
  "move-tenants": moveTenants,
  "create-job": createJob,
  "update-job": updateJob,
  "abort-job": abortJob,
  "found-residency": foundResidency,
  "set-corrections": setCorrections,
  "raise-revision": raiseRevision,
  "restamp-placements": restampPlacements,
  "set-incarnation": setIncarnation,
  "import-rows": importRows,
  "import-residency": importResidency,
  "add-token-key": addTokenKey,
  "promote-token-key": promoteTokenKey,
  "retire-token-key": retireTokenKey,
  "reseal-token-keys": resealTokenKeys,
  "create-home": createHome,
  "update-home": updateHome,
  "delete-home": deleteHome,
  "create-home-token": createHomeToken,
  "record-home-sightings": recordHomeSightings,
  "create-enrolment": createEnrolment,
  "redeem-enrolment": redeemEnrolment,
  "mint-service-key": mintServiceKey,
  "add-service-key": addServiceKey,
  "retire-service-key": retireServiceKey,
  "set-default-shard": setDefaultShard,
};

/** The statements of a mutation. */
export function mutationSteps<Kind extends Mutation["kind"]>(
  mutation: Of<Kind>,
  ledger: Ledger,
): MutationSteps {
  const steps: MutationFunction<Of<Kind>> = FUNCTIONS[mutation.kind];
  return steps(mutation, ledger);
}
