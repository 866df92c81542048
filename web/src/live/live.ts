// What the stream says, put to work: the state of the link, and questions that are asked again.
import { QueryClient, type Query } from "@tanstack/react-query";
import { Problem } from "../api/client";
import { changed, dueIn, NOTHING, pauseAfter, type Changes, type Happening } from "./changes";
import { budgetUsed } from "./notices";
import { Store } from "./store";
import type { Link } from "./stream";
import { followShared } from "./tabs";

export const link = new Store<Link>({ state: "connecting", since: Date.now(), tries: 0 });
/** When the page was last known to be up to date. */
export const asOf = new Store<number>(Date.now());

/** What may well be answered when it is asked again: nobody was there, or not now. */
const PASSING: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);
const isPassing = ({ state: { error } }: Query) => error instanceof Problem && PASSING.has(error.status);

/** Answers stay until the stream says that they changed; nothing is asked for by a clock. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Infinity,
      gcTime: 60_000,
      retry: false,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

let changes: Changes = NOTHING;
let flushedAt = 0;
let tookMs = 0;
let timer: ReturnType<typeof setTimeout> | null = null;

export function startLive(): void {
  followShared(() => changes.seq, { happened, linked });
  document.addEventListener("visibilitychange", schedule);
}

function linked(next: Link): void {
  // Since the first loss, not since the last try.
  const before = link.get();
  link.set(next.state === "lost" && before.state === "lost" ? { ...next, since: before.since } : next);
}

function happened(happening: Happening): void {
  changes = changed(changes, happening);
  asOf.set(Date.now());
  if (happening.kind === "event" && happening.event.event === "budget_alert") void budgetUsed(happening.event.runId);
  if (timer === null || changes.all) schedule();
}

function schedule(): void {
  if (timer !== null) clearTimeout(timer);
  const due = dueIn(changes, Date.now(), flushedAt, pauseAfter(tookMs, document.hidden));
  timer = due === null ? null : setTimeout(flush, due);
}

/** Ask again what is shown of the runs that changed.
 *
 * The first word of a question's key says what it is about: `run` and an id, `list` for what any
 * run can change, anything else for what no run changes.
 */
function flush(): void {
  timer = null;
  flushedAt = Date.now();
  const of = changes;
  changes = changed(changes, { kind: "flushed" });
  const isAbout = (query: Query) => {
    const [about, id] = query.queryKey;
    return of.all || about === "list" || (about === "run" && of.runs.has(String(id))) || isPassing(query);
  };
  // What is on its way may be older than the change. It comes, though, before it is asked for again: a slow answer
  // that is given up for each change never comes.
  const isLate = queries.isFetching({ predicate: isAbout }) > 0;
  const asked = queries.invalidateQueries({ predicate: isAbout }, { cancelRefetch: of.all });
  const begunAt = flushedAt;
  void asked.then(() => {
    tookMs = Date.now() - begunAt;
    const isMissed = queries.getQueryCache().findAll({ type: "active", predicate: isPassing }).length > 0;
    // While nobody is there, nothing is asked: all is, when somebody is again.
    if (link.get().state !== "live" || (!isLate && !isMissed)) return;
    changes = changed(changes, { kind: "late", of });
    schedule();
  });
}

/** After an action of ours: do not wait for the stream to come round. */
export function touched(runId: string): void {
  happened({ kind: "event", event: { seq: changes.seq ?? 0, runId, event: "run", label: "" } });
}
