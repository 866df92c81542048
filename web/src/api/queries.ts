// The questions that pages ask. The first word of a key says when it is asked again: see live.ts.
import { keepPreviousData, useInfiniteQuery, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useMemo } from "react";
import { get, runPath, text, type Query } from "./client";
import { seesAll } from "./login";
import type * as api from "./types";
import { ACTIVE_PHASES, WAITING_PHASES } from "../text/states";

type Found<T> = UseQueryResult<T, Error>;

function useAsked<T>(about: "list" | "still", path: string, query: Query, enabled: boolean): Found<T> {
  const queryFn = ({ signal }: { signal: AbortSignal }) => get<T>(path, query, signal);
  return useQuery({ queryKey: [about, path, query], queryFn, placeholderData: keepPreviousData, enabled });
}

function useList<T, Q extends Query = Query>(path: string, query: Q = {} as Q, enabled = true): Found<T> {
  return useAsked("list", path, query, enabled);
}

function useRunPart<T>(id: string, part: string, query: Query = {}): Found<T> {
  return useQuery({ queryKey: ["run", id, part, query], queryFn: ({ signal }) => get<T>(runPath(id, part), query, signal) });
}

/** What no run changes; asked once, and after a reconnect. */
function useStill<T, Q extends Query = Query>(path: string, query: Q = {} as Q, enabled = true): Found<T> {
  return useAsked("still", path, query, enabled);
}

/** The most rows that the home page asks for in each of its parts. */
export const NOW_ROWS = 75;
const FAILED_ROWS = 200;

export const useAttention = () => useList<api.Attention>("/v1/attention");
export const useWorking = () =>
  useList<api.RunPage, api.RunsQuery>("/v1/runs", { phase: ACTIVE_PHASES.join(","), limit: NOW_ROWS });
export const useWaiting = () =>
  useList<api.RunPage, api.RunsQuery>("/v1/runs", { phase: WAITING_PHASES.join(","), limit: NOW_ROWS });
export const useEnded = () => useList<api.RunPage, api.RunsQuery>("/v1/runs", { sort: "ended", limit: 10 });
export const useGraph = (query: api.GraphQuery) => useList<api.Graph, api.GraphQuery>("/v1/graph", query);
/** The rows of failures, for what an item that needs somebody does not say; asked once for the same runs. */
export function useFailed(ids: readonly string[]): ReadonlyMap<string, api.RunRow> {
  const query: api.RunsQuery = { outcome: "error,timeout,lost,partial", limit: FAILED_ROWS };
  const found = useQuery({
    queryKey: ["failed", ids],
    queryFn: ({ signal }) => get<api.RunPage>("/v1/runs", query, signal),
    placeholderData: keepPreviousData,
    enabled: ids.length > 0,
  });
  return useMemo(() => new Map(found.data?.runs.map((run) => [run.runId, run])), [found.data]);
}
export const useRuns = (query: api.RunsQuery, enabled = true) => useList<api.RunPage, api.RunsQuery>("/v1/runs", query, enabled);
/** The most rows of one answer. */
export const ROWS_MAX = 1_000;
/** Runs of some time back, asked once: what a chart of many rows shows is as of then. */
export const useRunsSince = (since: string, of: api.RunsQuery) => useStill<api.RunPage, api.RunsQuery>("/v1/runs", { ...of, since, archived: true, limit: ROWS_MAX }, since !== "");
/** All runs, the newest first, in pages as large as they come. */
export const useOlderRuns = () =>
  useInfiniteQuery({
    queryKey: ["list", "/v1/runs", "older"],
    queryFn: ({ pageParam, signal }) => get<api.RunPage>("/v1/runs", { limit: 1_000, cursor: pageParam } satisfies api.RunsQuery, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
  });
export const usePlans = () => useList<api.PlanPage>("/v1/plans", { limit: 100 });
export const useSchedules = () => useList<api.SchedulePage>("/v1/schedules");
export const useInbox = (all: boolean) => useList<api.Inbox, api.InboxQuery>("/v1/inbox", { all, limit: 500 });
export const useTrackRecords = (by: string, days: number) =>
  useList<api.TrackRecords, api.StatsQuery>("/v1/agents/stats", { by, days });

export const useSeries = (query: api.SeriesQuery) => useList<api.Series, api.SeriesQuery>("/v1/stats/series", query);

/** The newest run that no other run spawned. */
export const useLastRun = () => useRuns({ roots: true, limit: 1 });
/** Its directory: most who start another one mean the same. Before the first, the user's own; null = not known yet. */
export function useLastDirectory(): string | null {
  const runs = useLastRun();
  const daemon = useDiagnostics();
  if ([runs, daemon].some((each) => each.data === undefined && each.error === null)) return null;
  return runs.data?.runs[0]?.directory ?? daemon.data?.userDirectory ?? "";
}

/** What the newest run promised, `{}` = nothing; null = not known yet. */
export function useLastContract(): object | null {
  const runs = useLastRun();
  const id = runs.data?.runs[0]?.runId ?? "";
  const run = useStill<api.RunDetail>(runPath(id), {}, id !== "");
  if (runs.data === undefined && runs.error === null) return null;
  if (id !== "" && run.data === undefined && run.error === null) return null;
  return (run.data?.originalSpawnParams as { verification?: object } | undefined)?.verification ?? {};
}

export const useRun = (id: string) => useRunPart<api.RunDetail>(id, "");
export const useRunStatus = (id: string) => useRunPart<api.RunStatus>(id, "status");
export const useArtifacts = (id: string) => useRunPart<api.ArtifactPage>(id, "artifacts");
export const useDiff = (id: string) => useRunPart<api.WorktreeDiff>(id, "diff");
export const useWhy = (id: string) => useRunPart<api.Why>(id, "why");
export const useTimeline = (id: string) => useRunPart<api.Timeline>(id, "timeline", { limit: 1000 });
/** The newest lines of its tools. */
export const useToolLines = (id: string) => useRunPart<api.LogPage>(id, "log", { type: "tool", tail: 1_000 } satisfies api.LogQuery);
// A tree changes with every run below it, so it is asked again whenever any run changes.
export const useTree = (id: string) => useList<api.RunNode>(runPath(id, "tree"));

export function useResultText(id: string, bytes: number, enabled: boolean): Found<string> {
  return useQuery({
    queryKey: ["run", id, "result/text", bytes],
    queryFn: () => text(runPath(id, "result/text")),
    enabled,
  });
}

export const useAgents = (cwd = "") => useStill<api.AgentList>("/v1/agents", { cwd: cwd || null }, seesAll());
export const useSuggestions = (hint: string) =>
  useStill<api.Suggestions, api.SuggestQuery>("/v1/agents/suggest", { hint, limit: 5 }, hint !== "");
/** Asked whenever it is shown: no run says who logged in. */
export const useLogins = () =>
  useQuery({ queryKey: ["still", "/v1/logins"], queryFn: ({ signal }) => get<api.LoginList>("/v1/logins", {}, signal), refetchOnMount: "always" });
export const useVersion = () => useStill<api.DaemonVersion>("/version");
export const useConfig = () => useStill<api.EffectiveConfig>("/v1/config");
/** Alerts that were raised, the newest first, page after page. */
export function useAlerts(kind: string) {
  return useInfiniteQuery({
    queryKey: ["list", "/v1/alerts", kind],
    queryFn: ({ pageParam, signal }) =>
      get<api.AlertHistory>("/v1/alerts", { kind: kind || null, limit: 100, cursor: pageParam } satisfies api.AlertsQuery, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    placeholderData: keepPreviousData,
  });
}

/** The nodes that share the database; asked only where there is a cluster. */
export const useCluster = (isNode: boolean) => useList<api.Cluster>("/v1/cluster", {}, isNode);
export const useDiagnostics = () => useList<api.Diagnostics>("/v1/diagnostics");
export const useOpenApi = () => useStill<Record<string, unknown>>("/openapi.json");
