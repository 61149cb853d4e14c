// What the package offers as `@moor/server/drains`: forecasts and reports without the node.

export type { DrainForecast, DrainReport, DrainState } from "./drain-report.ts";
export { predictArrivals, type ArrivalForecast, type Arrivals } from "./predict-arrivals.ts";
