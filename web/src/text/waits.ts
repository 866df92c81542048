// How many runs waited to begin at once, from when each was spawned and began.
import type { RunRow } from "../api/types";
import { ms } from "./times";

/** From and to, in milliseconds since the epoch. */
export type Wait = readonly [number, number];

/** One that neither began nor ended waits until now. */
export const waitOf = (now: number) => ({ createdAt, startedAt, endedAt }: Pick<RunRow, "createdAt" | "startedAt" | "endedAt">): Wait => {
  const from = ms(createdAt) ?? now;
  return [from, ms(startedAt) ?? ms(endedAt) ?? now];
};

/** What takes less is the start itself, and no wait. */
const LEAST_MS = 1_000;

/** For each time from one of `begins` to the next: the most that waited at once, and the longest wait that reached into it. */
export function waitsIn(begins: readonly number[], all: readonly Wait[]): { most: number; longestMs: number }[] {
  const waits = all.filter(([from, to]) => to - from >= LEAST_MS);
  return begins.map((begin, at) => {
    const end = begins[at + 1] ?? Infinity;
    const here = waits.filter(([from, to]) => from < end && to > begin);
    const steps = here.flatMap(([from, to]) => [[Math.max(from, begin), 1], [to, -1]] as const);
    // Who begins makes place before the next one comes.
    steps.sort(([a, up], [b, other]) => a - b || up - other);
    let [now, most] = [0, 0];
    for (const [, step] of steps) most = Math.max(most, (now += step));
    return { most, longestMs: Math.max(0, ...here.map(([from, to]) => to - from)) };
  });
}
