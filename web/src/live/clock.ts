// One timer for all relative times of the page.
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

/** Words made of the time; the component is drawn again only when they are others. */
export function useWords<T extends string | number | boolean>(words: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => words(Date.now()));
}
