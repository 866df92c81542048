// One timer for all relative times of the page, and the daemon's clock: the browser may be another machine's.
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => listeners.forEach((each) => each()), 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  };
}

/** Clocks that differ by less count as the same: an answer takes its time. */
const NEAR_MS = 2_000;
let aheadMs = 0;

/** What time it is where the daemon is. */
export function now(): number {
  return Date.now() + aheadMs;
}

/** The daemon said what time it is. */
export function heardTime(at: string): void {
  const found = Date.parse(at) - Date.now();
  aheadMs = Math.abs(found) < NEAR_MS ? 0 : found;
}

/** Words made of the time; the component is drawn again only when they are others. */
export function useWords<T extends string | number | boolean>(words: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => words(now()));
}
