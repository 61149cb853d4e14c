// The operator API as a function from request to answer: finds the route and runs it.
//
// Spec: T1 (operator routes), T3.   I1  No answer is a redirect.

import { ProtocolError } from "@moor/protocol";
import { drainRoutes } from "./drain-routes.ts";
import { fleetRoutes } from "./fleet-routes.ts";
import { homeRoutes } from "./home-routes.ts";
import { jobRoutes } from "./job-routes.ts";
import { keyRoutes } from "./key-routes.ts";
import { moveRoutes } from "./move-routes.ts";
import type { OperatorAnswer, OperatorApiOptions, OperatorRequest, Route } from "./operator-route.ts";
import { residencyRoutes } from "./residency-routes.ts";
import { serviceKeyRoutes } from "./service-key-routes.ts";
import { tunnelRoutes } from "./tunnel-routes.ts";

/** The API's routes over one node's parts. Handlers reject with ProtocolError. */
export class OperatorApi {
  readonly #routes: readonly Route[];

  constructor(options: OperatorApiOptions) {
    this.#routes = [
      ...tunnelRoutes(options),
      ...keyRoutes(options),
      ...fleetRoutes(options),
      ...drainRoutes(options),
      ...moveRoutes(options),
      ...jobRoutes(options),
      ...residencyRoutes(options),
      ...homeRoutes(options),
      ...serviceKeyRoutes(options),
    ];
  }

  /** The methods of a path, or undefined when there is nothing at it. */
  methodsAt(path: string): readonly string[] | undefined {
    const route = this.#routes.find((candidate) => candidate.path.test(path));
    return route === undefined ? undefined : Object.keys(route.methods);
  }

  /** Runs a request. Rejects with ProtocolError. */
  async run(request: OperatorRequest): Promise<OperatorAnswer> {
    for (const route of this.#routes) {
      const match = route.path.exec(request.path);
      const handler = match === null ? undefined : route.methods[request.method];
      if (handler !== undefined) return handler(request, match?.[1] ?? "");
    }
    throw new ProtocolError("not_found");
  }
}
