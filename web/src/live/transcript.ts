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
const WHOLE_PAGE = 5_000;
const WAIT_S = 50;
const WAITS = "subagents:lines";
const AGAIN_MS = 1_000;
/** So many stay here; those that came first go first, and come again when they are looked at. */
const KEPT = 10_000;

function filtered({ grep, type, attempt }: Filter): LogQuery {
  return { grep: grep || null, type: type || null, attempt: attempt || null };
}

/** The text of all lines that pass the filter, also of those that are not here. */
export async function wholeText(id: string, filter: Filter): Promise<string> {
  const texts: string[] = [];
  for (;;) {
    const page: LogPage = await get<LogPage>(runPath(id, "log"), { ...filtered(filter), offset: texts.length, limit: WHOLE_PAGE });
    for (const line of page.lines) texts.push(line.text);
    if (page.lines.length === 0 || texts.length >= page.totalLines) return texts.join("\n");
  }
}

/** How many lines that pass the filter stand before one. */
export async function placeOf(id: string, filter: Filter, seq: number): Promise<number> {
  const ask = async (query: LogQuery) => (await get<LogPage>(runPath(id, "log"), { ...filtered(filter), ...query, limit: 1 })).totalLines;
  const [all, behind] = await Promise.all([ask({ offset: 0 }), ask({ afterSeq: seq - 1 })]);
  return Math.max(0, all - behind);
}

/** Follow a transcript; `need` brings the lines around a place. */
export function useTranscript(id: string, filter: Filter): [Transcript, (place: number) => void] {
  const [found, setFound] = useState(EMPTY);
  const asked = useRef(new Set<number>());
  const query: LogQuery = { ...filtered(filter), hits: filter.grep !== "" };
  const key = JSON.stringify([id, query]);

  useEffect(() => {
    const place: Place = { nextSeq: null, isOver: false };
    let stop = new AbortController();
    asked.current = new Set();
    setFound(EMPTY);
    const begin = () => void follow(id, query, place, (stop = new AbortController()).signal, setFound);
    const turned = () => (document.hidden ? stop.abort() : begin());
    begin();
    document.addEventListener("visibilitychange", turned);
    return () => {
      document.removeEventListener("visibilitychange", turned);
      stop.abort();
    };
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
/** How far it was followed; null = nothing is here yet. */
type Place = { nextSeq: number | null; isOver: boolean };

/** Bring the lines that come, until `signal` aborts or nobody looks at the tab. */
async function follow(id: string, query: LogQuery, place: Place, signal: AbortSignal, set: Change): Promise<void> {
  // What a tab in the background shows is there when it is looked at; more it need not have.
  while (!signal.aborted && !place.isOver && (place.nextSeq === null || !document.hidden)) {
    const { nextSeq } = place;
    try {
      const page =
        nextSeq === null
          ? await get<LogPage>(runPath(id, "log"), { ...query, tail: PAGE }, signal)
          : await inTurn((waitSeconds) => get<LogPage>(runPath(id, "log"), { ...query, afterSeq: nextSeq, waitSeconds, limit: 1_000 }, signal));
      if (signal.aborted) return;
      Object.assign(place, { nextSeq: page.nextSeq, isOver: page.ended });
      set((before) => added(before, page, nextSeq === null));
      if (page.lines.length === 0) await pause(AGAIN_MS);
    } catch (error) {
      if (signal.aborted) return;
      set((before) => ({ ...before, error: error as Error, isLoaded: true }));
      // What is asked wrongly is wrong the next time, too.
      if (error instanceof Problem && error.status >= 400 && error.status < 500) return;
      await pause(AGAIN_MS);
    }
  }
}

/** Ask so that the answer waits for lines, but for one tab at a time: a browser has six connections for all of them. */
async function inTurn(ask: (waitSeconds: number) => Promise<LogPage>): Promise<LogPage> {
  if (!("locks" in navigator)) return ask(0);
  return await navigator.locks.request(WAITS, { ifAvailable: true }, (lock) => ask(lock === null ? 0 : WAIT_S));
}

function pause(length: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, length));
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
