// Which runs changed since the page was last brought up to date: one set, whatever the stream
// brings, so that a thousand events of a run cost one look at it.

export type LiveEvent = { seq: number; runId: string; event: string; label: string };

export type Changes = {
  /** The last number that was seen; null = none yet. */
  seq: number | null;
  /** Runs that changed since the last flush. */
  runs: ReadonlySet<string>;
  /** Everything may have changed: events were missed. */
  all: boolean;
};

export type Happening =
  | { kind: "event"; event: LiveEvent }
  | { kind: "number"; seq: number }
  | { kind: "reset"; seq: number }
  | { kind: "connected" }
  | { kind: "flushed" }
  /** Of these there may be no answer that has the change. */
  | { kind: "late"; of: Changes };

export const NOTHING: Changes = { seq: null, runs: new Set(), all: false };

/** Between two looks at what changed, at least: a list is asked for at most once a second. */
export const FLUSH_MS = 1_000;

export function changed(before: Changes, happening: Happening): Changes {
  switch (happening.kind) {
    case "event": {
      const { seq, runId } = happening.event;
      // Delivery is at least once: what was seen before is no news.
      if (before.seq !== null && seq < before.seq) return before;
      return { ...before, seq, runs: before.runs.has(runId) ? before.runs : new Set(before.runs).add(runId) };
    }
    case "number":
      return { ...before, seq: Math.max(before.seq ?? 0, happening.seq) };
    case "reset":
      return { ...before, seq: happening.seq, all: true };
    case "connected":
      return { ...before, all: true };
    case "flushed":
      return { ...before, runs: new Set(), all: false };
    case "late":
      return { ...before, runs: new Set([...before.runs, ...happening.of.runs]), all: before.all || happening.of.all };
  }
}

/** The longest pause: of a page that nobody sees, or whose answers take their time. */
export const PAUSE_MS_MAX = 5_000;

/** How long to wait after a look that took so long: many pages must not keep the daemon from its work. */
export function pauseAfter(tookMs: number, isHidden: boolean): number {
  return isHidden ? PAUSE_MS_MAX : Math.min(Math.max(FLUSH_MS, 5 * tookMs), PAUSE_MS_MAX);
}

/** In how many milliseconds what changed is due to be looked at; null = nothing changed. */
export function dueIn(changes: Changes, now: number, flushedAt: number, pauseMs: number): number | null {
  if (!changes.all && changes.runs.size === 0) return null;
  // Whoever missed something is behind: that cannot wait.
  if (changes.all) return Math.max(0, flushedAt + FLUSH_MS - now);
  // All pages look at the same second, so that one answer does for all.
  const due = Math.round((flushedAt + pauseMs) / FLUSH_MS) * FLUSH_MS;
  return Math.max(0, due - now);
}
