// What the stream says, put to work: the state of the link, and questions that are asked again.
import { QueryClient } from "@tanstack/react-query";
import { changed, dueIn, NOTHING, pauseAfter, type Changes, type Happening } from "./changes";
import { budgetUsed } from "./notices";
import { Store } from "./store";
import type { Link } from "./stream";
import { followShared } from "./tabs";

export const link = new Store<Link>({ state: "connecting", since: Date.now(), tries: 0 });
/** When the page was last known to be up to date. */
export const asOf = new Store<number>(Date.now());

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
  if (timer === null) schedule();
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
  const { runs, all } = changes;
  changes = changed(changes, { kind: "flushed" });
  const asked = queries.invalidateQueries({
    predicate: ({ queryKey: [about, id] }) => all || about === "list" || (about === "run" && runs.has(String(id))),
  });
  const begunAt = flushedAt;
  void asked.then(() => (tookMs = Date.now() - begunAt));
}

/** After an action of ours: do not wait for the stream to come round. */
export function touched(runId: string): void {
  happened({ kind: "event", event: { seq: changes.seq ?? 0, runId, event: "run", label: "" } });
}
