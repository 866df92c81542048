// The documents of the daemon's API by their own names. Types only: nothing is kept twice.
import type { paths } from "./schema";

export type * from "./schema";

type Asked<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;
/** Parameters of a list, by their names in the document: one that is renamed there fails the build. */
type QueryOf<P extends keyof paths> = { [name in keyof Asked<P>]?: string | number | boolean | null };

export type RunsQuery = QueryOf<"/v1/runs">;
export type GraphQuery = QueryOf<"/v1/graph">;
export type LogQuery = QueryOf<"/v1/runs/{sel}/log">;
export type InboxQuery = QueryOf<"/v1/inbox">;
export type StatsQuery = QueryOf<"/v1/agents/stats">;
export type SeriesQuery = QueryOf<"/v1/stats/series">;
export type SuggestQuery = QueryOf<"/v1/agents/suggest">;
export type AlertsQuery = QueryOf<"/v1/alerts">;
