// Waiting runs by what they wait for, so that forty runs behind one limit are one row.
import type { RunRow } from "../api/types";
import { stateOf } from "./states";

export type Cause = { why: string; state: string; since: string | null; runs: RunRow[] };

/** Groups of equal cause, the largest first; within one, who waits longest comes first. */
export function causesOf(runs: readonly RunRow[]): Cause[] {
  const found = new Map<string, Cause>();
  for (const run of runs) {
    const state = stateOf(run).word;
    const why = withoutPlace(run.why ?? state);
    const key = `${state}/${why}`;
    const cause = found.get(key) ?? { why, state, since: null, runs: [] };
    cause.runs.unshift(run);
    cause.since = cause.since === null || (run.phaseSinceAt ?? "") < cause.since ? run.phaseSinceAt : cause.since;
    found.set(key, cause);
  }
  return [...found.values()].sort((a, b) => b.runs.length - a.runs.length || (a.since ?? "").localeCompare(b.since ?? ""));
}

/** The place in a line is each run's own; the line is what they share. */
function withoutPlace(why: string): string {
  return why.replace(/[;,] (?:next|\d+(?:st|nd|rd|th) in line|\d+ (?:runs? )?(?:ahead|before it))\b.*$/, "");
}
