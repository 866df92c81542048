// A word in any transcript: run after run, the newest first, until so many were searched.
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { get, runPath } from "../api/client";
import type { LogPage, LogQuery, RunPage, RunRow, RunsQuery } from "../api/types";
import { StateChip } from "../components/chip";
import { Form } from "../components/form";
import { Heading } from "../components/heading";
import { runAt } from "../components/routes";
import { RunLink } from "../components/run-link";
import { Said } from "../components/said";
import { Empty, Trouble } from "../components/states";
import { TimeRange } from "../components/time-range";
import { Ago } from "../components/when";
import { useAddress } from "../live/address";
import { counted } from "../text/amounts";
import { asked } from "../text/filter";
import { boundsOf } from "../text/time-range";

/** So many runs are searched at once, and so many before somebody wants more. */
const AT_ONCE = 3;
const PAGE = 100;
const LINES_SHOWN = 3;

type Hit = { run: RunRow } & Pick<LogPage, "lines" | "hits" | "totalLines">;
type Found = { hits: readonly Hit[]; searched: number; total: number; cursor: string | null; isBusy: boolean; error: Error | null };

const NOTHING: Found = { hits: [], searched: 0, total: 0, cursor: null, isBusy: false, error: null };

export default function SearchPage() {
  const [inAddress, put] = useAddress();
  const [grep, filter, range] = [inAddress("grep"), inAddress("q"), inAddress("time")];
  const [words, setWords] = useState(grep);
  const [found, searchOn] = useSearch(grep, filter, range);
  return (
    <>
      <Heading title="Search transcripts" note="what workers said and did" />
      <Form className="filters" onSend={() => put("grep", words.trim())}>
        <label className="search">
          <span className="visually-hidden">what to look for, a regular expression</span>
          <input autoFocus value={words} placeholder="a regular expression, then Enter" onChange={(event) => setWords(event.target.value)} autoComplete="off" />
        </label>
        <label className="search">
          <span className="visually-hidden">in which runs, as in the list of runs</span>
          <input value={filter} placeholder="in all runs, or state:failed  agent:codex" onChange={(event) => put("q", event.target.value)} autoComplete="off" />
        </label>
        <TimeRange range={range} onRange={(next) => put("time", next)} />
        <button type="submit" className="primary">Search</button>
      </Form>
      {found.error !== null && <Trouble error={found.error} />}
      {grep !== "" && (
        <p className="note" role="status">
          {found.isBusy ? "searching …" : `${counted(found.hits.length, "run")} with it`}, {found.searched.toLocaleString("en")} of {counted(found.total, "run")} searched
          {found.cursor !== null && !found.isBusy && (
            <>
              {" "}
              <button type="button" onClick={searchOn}>Search the next {PAGE}</button>
            </>
          )}
        </p>
      )}
      {found.hits.length > 0 ? (
        <ul className="box lines">
          {found.hits.map((hit) => (
            <HitLine key={hit.run.runId} hit={hit} grep={grep} />
          ))}
        </ul>
      ) : (
        !found.isBusy &&
        found.error === null && (
          <div className="box">
            <Empty title={grep === "" ? "Nothing is looked for yet" : "No line has it"}>
              <p>Lines that workers wrote, said or gave to their tools, in the newest runs first.</p>
            </Empty>
          </div>
        )
      )}
    </>
  );
}

function HitLine({ hit: { run, lines, hits, totalLines }, grep }: { hit: Hit; grep: string }) {
  return (
    <li className="line need hit">
      <StateChip run={run} />
      <span className="name">
        <RunLink run={run} className="label" />
        <span className="note">{run.agentId}</span>
      </span>
      <span className="why">
        {lines.map((line, at) => (
          <Link key={line.seq} href={`${runAt(run.runId, "transcript")}?line=${line.seq}`}>
            <Said text={line.text} mono hits={hits[at]} />
          </Link>
        ))}
        {totalLines > lines.length && (
          <Link href={`${runAt(run.runId, "transcript")}?${new URLSearchParams({ grep })}`} className="note">
            {counted(totalLines - lines.length, "more line")}
          </Link>
        )}
      </span>
      <span className="age num">
        <Ago at={run.endedAt ?? run.createdAt} />
      </span>
    </li>
  );
}

/** What was found so far, and how to go on behind it. */
function useSearch(grep: string, filter: string, range: string): [Found, () => void] {
  const [found, setFound] = useState(NOTHING);
  const [pages, setPages] = useState(1);
  const key = `${grep}\n${filter}\n${range}`;
  const [before, setBefore] = useState(key);
  if (before !== key) {
    setBefore(key);
    setFound(NOTHING);
    setPages(1);
  }
  useEffect(() => {
    if (grep === "") return;
    const stop = new AbortController();
    const put = (change: (was: Found) => Partial<Found>) => !stop.signal.aborted && setFound((was) => ({ ...was, ...change(was) }));
    const work = async () => {
      const query: RunsQuery = { ...boundsOf(range, new Date()), ...asked(filter), archived: true, limit: PAGE, cursor: found.cursor };
      const page = await get<RunPage>("/v1/runs", query, stop.signal);
      put((was) => ({ total: Math.max(was.total, page.total ?? 0) }));
      const left = [...page.runs];
      const next = async () => {
        for (let run = left.shift(); run !== undefined; run = left.shift()) {
          const [of, part] = [run, { grep, hits: true, tail: LINES_SHOWN } satisfies LogQuery];
          const there = await get<LogPage>(runPath(of.runId, "log"), part, stop.signal);
          put((was) => ({ searched: was.searched + 1, ...(there.lines.length > 0 ? { hits: sorted([...was.hits, { ...there, run: of }]) } : {}) }));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, next));
      put(() => ({ cursor: page.nextCursor, isBusy: false }));
    };
    put(() => ({ isBusy: true, error: null }));
    // Each key of a filter is no search of its own.
    const timer = setTimeout(() => work().catch((error: unknown) => put(() => ({ isBusy: false, error: error as Error }))), 300);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
    // From where the last page ended, when the next one is wanted.
    // eslint-disable-next-line
  }, [key, pages]);
  return [found, () => setPages(pages + 1)];
}

const sorted = (hits: readonly Hit[]) => hits.toSorted((a, b) => (b.run.createdAt ?? "").localeCompare(a.run.createdAt ?? ""));
