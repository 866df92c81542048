// The lines of a transcript, as far as they were looked at, and those that come while one looks.
import { useEffect, useRef, useState } from "react";
import { get, Problem, runPath } from "../api/client";
import type { LogLine, LogPage, LogQuery } from "../api/types";

export type Filter = { grep: string; type: string; attempt: string };

export type Transcript = {
  /** So many lines pass the filter. */
  total: number;
  /** Those that are here, by their place. */
  lines: ReadonlyMap<number, LogLine>;
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

/** Follow a transcript; `need` brings the lines around a place. */
export function useTranscript(id: string, filter: Filter): [Transcript, (place: number) => void] {
  const [found, setFound] = useState(EMPTY);
  const asked = useRef(new Set<number>());
  const query: LogQuery = { grep: filter.grep || null, type: filter.type || null, attempt: filter.attempt || null };
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
    get<LogPage>(runPath(id, "log"), { ...query, offset: page * PAGE, limit: PAGE }).then(
      (answer) => {
        if (pages === asked.current) setFound((before) => ({ ...before, lines: withLines(before.lines, answer) }));
      },
      () => pages.delete(page),
    );
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
    lines: withLines(before.lines, { ...page, offset }),
    dropped: page.droppedLines,
    ended: page.ended,
    note: page.note,
    error: null,
    isLoaded: true,
  };
}

function withLines(before: ReadonlyMap<number, LogLine>, page: LogPage): ReadonlyMap<number, LogLine> {
  if (page.lines.length === 0) return before;
  const lines = new Map(before);
  page.lines.forEach((line, at) => lines.set(page.offset + at, line));
  return lines;
}
