// All runs: roots with what is below them, filtered by the address, in a table that draws only what
// is seen.
import { useQueries, useInfiniteQuery, keepPreviousData } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { get } from "../api/client";
import type { RunPage, RunRow, RunsQuery } from "../api/types";
import { Act } from "../components/act";
import { BulkBar } from "../components/bulk-bar";
import { Choice } from "../components/form";
import { FirstSteps } from "../components/first-steps";
import { Heading } from "../components/heading";
import { MoreRow, PlanRow } from "../components/plan-row";
import { RowScope } from "../components/rows";
import { useRowsInView } from "../components/rows-in-view";
import { isByEnd, isOldestFirst, isRanked, RunTableHead, RunTableRow, SORTS, type Sort } from "../components/run-table";
import { SavedFilters } from "../components/saved-filters";
import { Spacer } from "../components/spacer";
import { Answered, Empty } from "../components/states";
import { TimeRange } from "../components/time-range";
import { useAddress } from "../live/address";
import { useKeys } from "../live/keys";
import { asked, FILTER_NAMES } from "../text/filter";
import { isPlan } from "../text/plan-rows";
import { boundsOf, RANGES } from "../text/time-range";

const PAGE = 200;
const ROW_PX = 34;
const CHILDREN = 200;
/** So many can be chosen at once; the daemon gives no more in one answer. */
const CHOSEN_MAX = 1_000;

/** A run, a plan that is folded, or how many are left out of what is unfolded. */
type Shown = { run: RunRow; level: number; kind: "run" | "plan" | "more"; words?: string };

export default function RunsPage() {
  const [inAddress, put, search] = useAddress();
  const [, navigate] = useLocation();
  const filter = inAddress("q");
  // Who looks for something means all runs; the plain list would be drowned by what is below.
  const isFlat = filter === "" ? inAddress("flat") === "1" : inAddress("roots") !== "1";
  const hidesEnded = inAddress("hide") === "1";
  const sort = (inAddress("sort") || "newest") as Sort;
  const field = useRef<HTMLInputElement>(null);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<ReadonlyMap<string, RunRow>>(new Map());

  const wanted = useDeferredValue(filter);
  const range = inAddress("time");
  // A state, a number or an end is each step's own.
  const folds = !isFlat && filter === "" && !hidesEnded && !isRanked(sort) && !isByEnd(sort);
  const fitting: RunsQuery = {
    ...boundsOf(range, new Date()),
    ...asked(wanted),
    roots: !isFlat && !("tree" in asked(wanted)),
    ...(hidesEnded && !["state", "phase"].some((each) => each in asked(wanted)) ? { state: "waiting,working,needs_you" } : {}),
    sort,
  };
  const query: RunsQuery = { ...fitting, folded: folds, limit: PAGE };
  const pages = useInfiniteQuery({
    queryKey: ["list", "/v1/runs", query],
    queryFn: ({ pageParam, signal }) => get<RunPage>("/v1/runs", { ...query, [isRanked(sort) ? "offset" : "cursor"]: pageParam }, signal),
    initialPageParam: null as string | number | null,
    getNextPageParam: (page) => (isRanked(sort) ? nextOffset(page) : page.nextCursor),
    placeholderData: keepPreviousData,
  });
  // A run that rose between two pages is on both of them.
  const all = useMemo(() => [...new Map(pages.data?.pages.flatMap((page) => page.runs).map((run) => [run.runId, run])).values()], [pages.data]);
  const [roots, fresh, showFresh] = useSteady(all, `${sort} ${wanted} ${range}`, chosen.size > 0, sort);
  const children = useQueries({
    queries: [...opened].map((key) => {
      const part: RunsQuery = key.startsWith(PLAN) ? { plan: key.slice(PLAN.length), sort: "oldest" } : { parent: key };
      return { queryKey: ["list", "/v1/runs", part], queryFn: () => get<RunPage>("/v1/runs", { ...part, limit: CHILDREN }) };
    }),
  });
  const below = new Map([...opened].map((key, at) => [key, children[at]?.data]));
  const rows = roots.flatMap((run) => withBelow({ run, level: 0, kind: folds && isPlan(run) ? "plan" : "run" }, below));
  const first = pages.data?.pages[0];

  useKeys({
    "/": () => field.current?.focus(),
    h: () => put("hide", hidesEnded ? "" : "1"),
    ".": showFresh,
    V: () => void chooseAll(),
    Escape: () => setChosen(new Map()),
  });
  const firstOf = async (part: RunsQuery) => (await get<RunPage>("/v1/runs", { ...part, limit: CHOSEN_MAX })).runs;
  const choose = async ({ run, kind }: Shown) => {
    const runs = kind === "plan" ? await firstOf({ plan: run.runId }) : [run];
    setChosen((before) => {
      const [next, isIn] = [new Map(before), before.has(run.runId)];
      for (const each of runs) isIn ? next.delete(each.runId) : next.set(each.runId, each);
      return next;
    });
  };
  const chooseAll = async () => setChosen(new Map((await firstOf(fitting)).map((run) => [run.runId, run])));
  const toggle = (shown: Shown) => {
    const next = new Set(opened);
    if (!next.delete(openedAs(shown))) next.add(openedAs(shown));
    setOpened(next);
  };

  return (
    <RowScope>
      <Heading title="Runs" note={first && totalOf(first, sort)} />
      <SavedFilters search={search.toString()} />
      <div className="filters">
        <label className="search">
          <span className="visually-hidden">filter: {FILTER_NAMES.join(", ")}, or words</span>
          <input
            ref={field}
            value={filter}
            placeholder="state:failed  agent:codex  tag:release  or words"
            onChange={(event) => put("q", event.target.value)}
            autoComplete="off"
          />
        </label>
        <TimeRange range={range} onRange={(next) => put("time", next)} />
        <Choice name="sorted by" value={sort} options={Object.entries(SORTS)} onChoose={(next) => put("sort", next === "newest" ? "" : next)} />
        <label className="check button">
          <input type="checkbox" checked={!isFlat} onChange={() => (filter === "" ? put("flat", isFlat ? "" : "1") : put("roots", isFlat ? "1" : ""))} /> roots only
        </label>
        <label className="check button">
          <input type="checkbox" checked={hidesEnded} onChange={() => put("hide", hidesEnded ? "" : "1")} /> hide ended <kbd>h</kbd>
        </label>
        <Act disabled={rows.length === 0} onClick={() => void chooseAll()} hint="V">Choose all</Act>
      </div>
      {chosen.size > 0 && (
        <BulkBar runs={[...chosen.values()]} note={chosen.size === CHOSEN_MAX ? "More may fit: so many can be chosen at once." : ""} onClear={() => setChosen(new Map())} />
      )}
      {fresh > 0 && (
        <button type="button" className="plain fresh" onClick={showFresh}>
          {fresh === 1 ? "1 new run" : `${fresh} new runs`} at the top: show <kbd>.</kbd>
        </button>
      )}
      <Answered query={pages}>
        {() =>
          rows.length === 0 ? (
            <NothingFits filter={[wanted, range && (RANGES[range] ?? range)].filter(Boolean).join(", ")} hidden={first?.hidden ?? 0} clear={() => navigate("/runs", { replace: true })} />
          ) : (
            <Table
              rows={rows}
              total={first?.total ?? rows.length}
              more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : null}
              opened={opened}
              chosen={chosen}
              sort={sort}
              onSort={(next) => put("sort", next === "newest" ? "" : next)}
              onToggle={toggle}
              onChoose={choose}
            />
          )
        }
      </Answered>
    </RowScope>
  );
}

const PLAN = "plan/";
const openedAs = ({ run, kind }: Shown) => (kind === "plan" ? `${PLAN}${run.runId}` : run.runId);

function withBelow(shown: Shown, below: ReadonlyMap<string, RunPage | undefined>): Shown[] {
  const page = below.get(openedAs(shown));
  if (page === undefined) return [shown];
  const level = shown.level + 1;
  const rows = page.runs.flatMap((run) => withBelow({ run, level, kind: "run" }, below));
  const left = (page.total ?? 0) - page.runs.length;
  const more: Shown = { run: shown.run, level, kind: "more", words: `${left.toLocaleString("en")}${page.totalIsBound ? " or more" : ""} more:` };
  return [shown, ...rows, ...(left > 0 ? [more] : [])];
}

function totalOf(page: RunPage, sort: Sort): string {
  const { total, totalIsBound, hidden } = page;
  const number = (total ?? 0).toLocaleString("en");
  const ranked = totalIsBound && isRanked(sort) ? `, compared are the newest ${number}` : "";
  return `${number}${totalIsBound ? " or more" : ""} fit${ranked}${hidden > 0 ? `, ${hidden} archived` : ""}`;
}

function nextOffset({ offset, runs, total }: RunPage): number | null {
  return runs.length > 0 && offset + runs.length < (total ?? 0) ? offset + runs.length : null;
}

/** Rows that stay where they are: what is new waits above until somebody wants it.
 *
 * An untouched list at its top takes new rows at once.
 */
function useSteady(all: readonly RunRow[], key: string, isTouched: boolean, sort: Sort): [readonly RunRow[], number, () => void] {
  const timeOf = (run: RunRow | undefined) => (isByEnd(sort) ? run?.endedAt : run?.createdAt) ?? "";
  const [known, setKnown] = useState<{ key: string; newest: string }>({ key: "", newest: "" });
  const newest = timeOf(all[0]);
  const isHeld = !isOldestFirst(sort) && known.key === key && (isTouched || window.scrollY > 0);
  const places = useRef<ReadonlyMap<string, number>>(new Map());
  if (!isHeld) places.current = new Map(all.map((run, at) => [run.runId, at]));
  useEffect(() => {
    // Before the first rows are here there is nothing to hold, wherever the page before was scrolled to.
    if (!isHeld && newest !== "" && (known.key !== key || known.newest !== newest)) setKnown({ key, newest });
  }, [isHeld, key, newest, known]);
  const place = (run: RunRow) => places.current.get(run.runId) ?? all.length;
  if (isRanked(sort)) return [isHeld ? [...all].sort((a, b) => place(a) - place(b)) : all, 0, () => {}];
  const shown = isHeld ? all.filter((run) => timeOf(run) <= known.newest) : all;
  return [shown, all.length - shown.length, () => setKnown({ key, newest })];
}

type TableProps = {
  rows: readonly Shown[];
  total: number;
  more: (() => void) | null;
  opened: ReadonlySet<string>;
  chosen: ReadonlyMap<string, RunRow>;
  sort: Sort;
  onSort: (sort: Sort) => void;
  onToggle: (shown: Shown) => void;
  onChoose: (shown: Shown) => Promise<void>;
};

const keyOf = ({ run, level, kind }: Shown) => `${kind}/${run.runId}/${level}`;

function Table({ rows, total, more, opened, chosen, sort, onSort, onToggle, onChoose }: TableProps) {
  const { box, refOf, shown, before, after } = useRowsInView<Shown, HTMLDivElement>(rows, keyOf, ROW_PX);
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 20) more?.();
  }, [last, rows.length, more]);
  return (
    <div className={`box runs by-${sort}`} role="treegrid" aria-label="runs" aria-rowcount={Math.max(total, rows.length) + 1}>
      <RunTableHead sort={sort} onSort={onSort} />
      <div ref={box} role="rowgroup">
        <Spacer height={before} />
        {shown.map(({ index, key, row }) => {
          const { run, level, kind, words = "" } = row;
          if (kind === "more") return <MoreRow key={key} refOf={refOf} index={index} run={run} words={words} />;
          const [isOpen, isChosen] = [opened.has(openedAs(row)), chosen.has(run.runId)];
          const props = { refOf, index, run, isOpen, isChosen, onToggle: () => onToggle(row), onChoose: () => void onChoose(row) };
          return kind === "plan" ? <PlanRow key={key} {...props} /> : <RunTableRow key={key} {...props} level={level} byEnd={isByEnd(sort)} />;
        })}
        <Spacer height={after} />
      </div>
    </div>
  );
}

function NothingFits({ filter, hidden, clear }: { filter: string; hidden: number; clear: () => void }) {
  const everything = useCount();
  if (filter === "" && everything === 0) {
    return <FirstSteps />;
  }
  return (
    <Empty title={filter === "" ? "No run is active" : `No run fits ${filter}`}>
      <p>
        {everything === null ? "" : `${everything.toLocaleString("en")} runs without the filter`}
        {hidden > 0 && `; ${hidden} more are archived`}.{" "}
        <button type="button" onClick={clear}>Clear the filter</button>
      </p>
    </Empty>
  );
}

/** So many there are without a filter. */
function useCount(): number | null {
  const [found] = useQueries({
    queries: [{ queryKey: ["list", "/v1/runs", { limit: 1 }], queryFn: () => get<RunPage>("/v1/runs", { limit: 1 }) }],
  });
  return found.data?.total ?? null;
}

