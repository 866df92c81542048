// All runs: roots with what is below them, filtered by the address, in a table that draws only what
// is seen.
import { useQueries, useInfiniteQuery, keepPreviousData } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { get } from "../api/client";
import type { RunPage, RunRow, RunsQuery } from "../api/types";
import { BulkBar } from "../components/bulk-bar";
import { Heading } from "../components/heading";
import { RowScope } from "../components/rows";
import { useRowsInView } from "../components/rows-in-view";
import { isByEnd, isOldestFirst, RunTableHead, RunTableRow, type Sort } from "../components/run-table";
import { SavedFilters } from "../components/saved-filters";
import { Spacer } from "../components/spacer";
import { Answered, Command, Empty } from "../components/states";
import { useKeys } from "../live/keys";
import { asked, FILTER_NAMES } from "../text/filter";

const PAGE = 200;
const ROW_PX = 34;
const CHILDREN = 200;

type Shown = { run: RunRow; level: number };

export default function RunsPage() {
  const [search, setSearch] = useSearchParams();
  const filter = search.get("q") ?? "";
  // Who looks for something means all runs; the plain list would be drowned by what is below.
  const isFlat = filter === "" ? search.get("flat") === "1" : search.get("roots") !== "1";
  const hidesEnded = search.get("hide") === "1";
  const sort = (search.get("sort") ?? "newest") as Sort;
  const field = useRef<HTMLInputElement>(null);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<ReadonlyMap<string, RunRow>>(new Map());
  const put = (name: string, value: string) =>
    setSearch(
      (before) => {
        if (value === "") before.delete(name);
        else before.set(name, value);
        return before;
      },
      { replace: true },
    );

  const wanted = useDeferredValue(filter);
  const query: RunsQuery = {
    ...asked(wanted),
    roots: !isFlat && !("tree" in asked(wanted)),
    ...(hidesEnded && !["state", "phase"].some((each) => each in asked(wanted)) ? { state: "waiting,working,needs_you" } : {}),
    sort,
    limit: PAGE,
  };
  const pages = useInfiniteQuery({
    queryKey: ["list", "/v1/runs", query],
    queryFn: ({ pageParam, signal }) => get<RunPage>("/v1/runs", { ...query, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    placeholderData: keepPreviousData,
  });
  const all = useMemo(() => pages.data?.pages.flatMap((page) => page.runs) ?? [], [pages.data]);
  const [roots, fresh, showFresh] = useSteady(all, `${sort} ${wanted}`, chosen.size > 0, sort);
  const children = useQueries({
    queries: [...opened].map((id) => ({
      queryKey: ["list", "/v1/runs", { parent: id }],
      queryFn: () => get<RunPage>("/v1/runs", { parent: id, limit: CHILDREN }),
    })),
  });
  const below = new Map([...opened].map((id, at) => [id, children[at]?.data?.runs ?? []]));
  const rows: Shown[] = roots.flatMap((run) => withBelow(run, 0, below));
  const first = pages.data?.pages[0];

  useKeys({
    "/": () => field.current?.focus(),
    h: () => put("hide", hidesEnded ? "" : "1"),
    ".": showFresh,
    Escape: () => setChosen(new Map()),
  });
  const choose = (run: RunRow) => {
    const next = new Map(chosen);
    if (!next.delete(run.runId)) next.set(run.runId, run);
    setChosen(next);
  };
  const toggle = (run: RunRow) => {
    const next = new Set(opened);
    if (!next.delete(run.runId)) next.add(run.runId);
    setOpened(next);
  };

  return (
    <RowScope>
      <Heading title="Runs" note={first && totalOf(first)} />
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
        <select aria-label="sorted by" value={isByEnd(sort) ? "ended" : "newest"} onChange={(event) => put("sort", event.target.value === "newest" ? "" : event.target.value)}>
          <option value="newest">by start</option>
          <option value="ended">by end: only ended</option>
        </select>
        <label className="check button">
          <input type="checkbox" checked={!isFlat} onChange={() => (filter === "" ? put("flat", isFlat ? "" : "1") : put("roots", isFlat ? "1" : ""))} /> roots only
        </label>
        <label className="check button">
          <input type="checkbox" checked={hidesEnded} onChange={() => put("hide", hidesEnded ? "" : "1")} /> hide ended <kbd>h</kbd>
        </label>
      </div>
      {chosen.size > 0 && <BulkBar runs={[...chosen.values()]} onClear={() => setChosen(new Map())} />}
      {fresh > 0 && (
        <button type="button" className="plain fresh" onClick={showFresh}>
          {fresh === 1 ? "1 new run" : `${fresh} new runs`} at the top: show <kbd>.</kbd>
        </button>
      )}
      <Answered query={pages}>
        {() =>
          rows.length === 0 ? (
            <NothingFits filter={wanted} hidden={first?.hidden ?? 0} clear={() => setSearch({}, { replace: true })} />
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

function withBelow(run: RunRow, level: number, below: ReadonlyMap<string, RunRow[]>): Shown[] {
  return [{ run, level }, ...(below.get(run.runId) ?? []).flatMap((each) => withBelow(each, level + 1, below))];
}

function totalOf(page: RunPage): string {
  const { total, totalIsBound, hidden } = page;
  return `${(total ?? 0).toLocaleString("en")}${totalIsBound ? " or more" : ""} fit${hidden > 0 ? `, ${hidden} archived` : ""}`;
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
  useEffect(() => {
    if (!isHeld && (known.key !== key || known.newest !== newest)) setKnown({ key, newest });
  }, [isHeld, key, newest, known]);
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
  onToggle: (run: RunRow) => void;
  onChoose: (run: RunRow) => void;
};

const keyOf = ({ run, level }: Shown) => `${run.runId}/${level}`;

function Table({ rows, total, more, opened, chosen, sort, onSort, onToggle, onChoose }: TableProps) {
  const { box, refOf, shown, before, after } = useRowsInView<Shown, HTMLDivElement>(rows, keyOf, ROW_PX);
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 20) more?.();
  }, [last, rows.length, more]);
  return (
    <div className="box runs" role="treegrid" aria-label="runs" aria-rowcount={Math.max(total, rows.length) + 1}>
      <RunTableHead sort={sort} onSort={onSort} />
      <div ref={box} role="rowgroup">
        <Spacer height={before} />
        {shown.map(({ index, key, row }) => (
          <RunTableRow
            key={key}
            refOf={refOf}
            index={index}
            run={row.run}
            level={row.level}
            isOpen={opened.has(row.run.runId)}
            isChosen={chosen.has(row.run.runId)}
            byEnd={isByEnd(sort)}
            onToggle={onToggle}
            onChoose={onChoose}
          />
        ))}
        <Spacer height={after} />
      </div>
    </div>
  );
}

function NothingFits({ filter, hidden, clear }: { filter: string; hidden: number; clear: () => void }) {
  const everything = useCount();
  if (filter === "" && everything === 0) {
    return (
      <Empty title="No runs yet">
        <Command text="subagents run 'wc -l README.md' --label first" />
      </Empty>
    );
  }
  return (
    <Empty title={filter === "" ? "No run is active" : `No run fits ${filter}`}>
      <p>
        {everything === null ? "" : `${everything.toLocaleString("en")} runs without the filter`}
        {hidden > 0 && `; ${hidden} more are archived`}.{" "}
        <button type="button" onClick={clear}>
          Clear the filter
        </button>
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

