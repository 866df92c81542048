// The lines of a transcript, as far as they were looked at, and those that come while one looks.
import { useEffect, useRef, useState } from "react";
import { get, Problem, runPath } from "../api/client";
import type { LogLine, LogPage, LogQuery } from "../api/types";

export type Filter = { grep: string; type: string; attempt: string };

/** With where the filter's pattern matched in it. */
export type FoundLine = LogLine & { hits: readonly (readonly number[])[] | undefined };
type Lines = ReadonlyMap<number, FoundLine | null>;

export type Transcript = {
  /** So many lines pass the filter. */
  total: number;
  /** Those that are here, by their place; null = it is gone. */
  lines: Lines;
  dropped: number;
  ended: boolean;
  note: string | null;
  error: Error | null;
  isLoaded: boolean;
};

const EMPTY: Transcript = {
  ...{ total: 0, lines: new Map(), dropped: 0, ended: false, note: null, error: null, isLoaded: false },
};
const PAGE = 200;
const WAIT_S = 50;
const AGAIN_MS = 1_000;
/** So many stay here; those that came first go first, and come again when they are looked at. */
const KEPT = 10_000;

/** Follow a transcript; `need` brings the lines around a place. */
export function useTranscript(id: string, filter: Filter): [Transcript, (place: number) => void] {
  const [found, setFound] = useState(EMPTY);
  const asked = useRef(new Set<number>());
  const query: LogQuery = { grep: filter.grep || null, hits: filter.grep !== "", type: filter.type || null, attempt: filter.attempt || null };
  const key = JSON.stringify([id, query]);

  useEffect(() => {
    const stop = new AbortController();
    asked.current = new Set();
    setFound(EMPTY);
    void follow(id, query, stop.signal, (change) => {
      if (!stop.signal.aborted) setFound(change);
    });
    return () => stop.abort();
    // The key has all of them.
    // eslint-disable-next-line
  }, [key]);

  const need = (place: number) => {
    const page = Math.floor(place / PAGE);
    if (asked.current.has(page) || found.lines.has(place)) return;
    asked.current.add(page);
    const pages = asked.current;
    const offset = page * PAGE;
    get<LogPage>(runPath(id, "log"), { ...query, offset, limit: PAGE })
      .then((answer) => {
        if (pages !== asked.current) return;
        const end = Math.min(offset + PAGE, answer.totalLines);
        setFound((before) => ({ ...before, lines: withLines(before.lines, answer, offset, end) }));
      })
      .catch(() => {})
      .finally(() => pages.delete(page));
  };
  return [found, need];
}

type Change = (change: (before: Transcript) => Transcript) => void;

async function follow(id: string, query: LogQuery, signal: AbortSignal, set: Change): Promise<void> {
  let nextSeq: number | null = null;
  while (!signal.aborted) {
    try {
      // The line is held until there is something: nothing is asked for in vain.
      const more: LogQuery = nextSeq === null ? { tail: PAGE } : { afterSeq: nextSeq, waitSeconds: WAIT_S, limit: 1_000 };
      const page: LogPage = await get<LogPage>(runPath(id, "log"), { ...query, ...more }, signal);
      const isFirst = nextSeq === null;
      nextSeq = page.nextSeq;
      set((before) => added(before, page, isFirst));
      if (page.ended) return;
    } catch (error) {
      if (signal.aborted) return;
      set((before) => ({ ...before, error: error as Error, isLoaded: true }));
      // What is asked wrongly is wrong the next time, too.
      if (error instanceof Problem && error.status >= 400 && error.status < 500) return;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

function added(before: Transcript, page: LogPage, isFirst: boolean): Transcript {
  // Behind a number the daemon counts from there; here places are counted from the beginning.
  const offset = isFirst ? page.offset : before.total;
  return {
    total: isFirst ? page.totalLines : before.total + page.returnedLines,
    lines: withLines(before.lines, { ...page, offset }, offset, offset + page.lines.length),
    dropped: page.droppedLines,
    ended: page.ended,
    note: page.note,
    error: null,
    isLoaded: true,
  };
}

/** With the lines of a page, which was asked for from one place to another. */
function withLines(before: Lines, page: LogPage, from: number, to: number): Lines {
  if (from >= to) return before;
  const lines = new Map(before);
  for (let place = from; place < to; place += 1) {
    // The newest in the order of the map, too.
    lines.delete(place);
    const line = page.lines[place - page.offset];
    lines.set(place, line === undefined ? null : { ...line, hits: page.hits?.[place - page.offset] });
  }
  for (const place of lines.keys()) {
    if (lines.size <= KEPT) break;
    lines.delete(place);
  }
  return lines;
}
