// A plan as one row of a list: its first step, with the states of all of them.
import type { RunRow } from "../api/types";
import { named } from "./states";

/** What is said of several runs as a whole is the first of these that one of them is in. */
const FIRST = ["needs you", "working", "waiting", "failed", "cancelled", "ok (vacuous)", "ok"];

export const isPlan = (run: Pick<RunRow, "runId" | "planId">) => run.planId === run.runId;

/** How many runs are in each state, in the words that people are shown; `own` is one of them more. */
export function countedStates(states: Readonly<Record<string, number>> = {}, own: string | null = null): [string, number][] {
  const found = new Map<string, number>(own === null ? [] : [[own, 1]]);
  for (const [wire, number] of Object.entries(states)) {
    const { word } = named(wire);
    found.set(word, (found.get(word) ?? 0) + number);
  }
  return [...found].sort(([a], [b]) => FIRST.indexOf(a) - FIRST.indexOf(b));
}

export const inWords = (states: readonly [string, number][]) => states.map(([word, number]) => `${number} ${word}`).join(" · ");
