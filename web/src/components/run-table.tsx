// Rows of the table of runs.
import { useLocation } from "wouter";
import { cancel, markRead, retrySoon } from "../api/actions";
import type { RunRow } from "../api/types";
import { peeked } from "../live/notices";
import { plain } from "../text/marks";
import { countedStates, inWords } from "../text/plan-rows";
import { isEnded } from "../text/states";
import { StateChip } from "./chip";
import { Cost, Tokens } from "./cost";
import { runAt } from "./routes";
import { Cell, useRow } from "./rows";
import { whyOf } from "./run-line";
import { RunLink } from "./run-link";
import { Said } from "./said";
import { copy } from "./states";
import { Ago, Took } from "./when";

const COLUMNS = ["", "state", "run", "agent", "why", "att.", "time", "took", "tokens", "cost"];
const NUMBERS = new Set(["att.", "time", "took", "tokens", "cost"]);

/** What `sort` of `/v1/runs` may be. */
export const SORTS = {
  newest: "newest first",
  oldest: "oldest first",
  ended: "last ended first",
  ended_oldest: "first ended first",
  cost: "costliest first",
  took: "longest first",
  tokens: "most tokens first",
};
export type Sort = keyof typeof SORTS;
const TURNED: Partial<Record<Sort, Sort>> = { newest: "oldest", ended: "ended_oldest", ended_oldest: "ended" };
export const isByEnd = (sort: Sort) => sort === "ended" || sort === "ended_oldest";
export const isOldestFirst = (sort: Sort) => sort === "oldest" || sort === "ended_oldest";
/** By a number, which the daemon compares of the newest thousand that fit. */
export const isRanked = (sort: Sort) => sort === "cost" || sort === "took" || sort === "tokens";

export function RunTableHead({ sort, onSort }: { sort: Sort; onSort: (sort: Sort) => void }) {
  const sortOf = (column: string) => (column === "time" && !isRanked(sort) ? sort : (column as Sort));
  return (
    <div role="rowgroup">
      <div role="row" className="runrow head" aria-rowindex={1}>
        {COLUMNS.map((each) => (
          <span
            key={each}
            role="columnheader"
            className={`${NUMBERS.has(each) ? "num " : ""}col-${each === "" ? "choose" : each === "time" ? "started" : each.replace(".", "")}`}
            aria-sort={sortOf(each) !== sort ? undefined : isOldestFirst(sort) ? "ascending" : "descending"}
          >
            {each === "" ? (
              <span className="visually-hidden">chosen</span>
            ) : each === "time" ? (
              <button type="button" className="plain" onClick={() => onSort(TURNED[sort] ?? "newest")}>
                {isByEnd(sort) ? "ended" : "started"} {isRanked(sort) ? "" : isOldestFirst(sort) ? "↑" : "↓"}
              </button>
            ) : isRanked(each as Sort) ? (
              <button type="button" className="plain" title={SORTS[each as Sort]} onClick={() => onSort(each as Sort)}>
                {each} {each === sort && "↓"}
              </button>
            ) : (
              each
            )}
          </span>
        ))}
      </div>
    </div>
  );
}

export type RowProps = {
  refOf: (element: Element | null) => void;
  index: number;
  run: RunRow;
  isOpen: boolean;
  isChosen: boolean;
  onToggle: (run: RunRow) => void;
  onChoose: (run: RunRow) => void;
};

export function RunTableRow({ refOf, index, run, level, isOpen, isChosen, byEnd, onToggle, onChoose }: RowProps & { level: number; byEnd: boolean }) {
  const [, navigate] = useLocation();
  const has = run.below !== null && run.below.runs > 0;
  const open = () => navigate(runAt(run.runId));
  const row = useRow(`${run.runId}/${level}`, index === 0, {
    Enter: open,
    o: open,
    Space: () => peeked.set(run),
    v: () => onChoose(run),
    x: () => void markRead([run]),
    r: () => retrySoon([run]),
    y: () => void copy(run.runId),
    Backspace: () => void cancel(run),
    ArrowRight: () => has && !isOpen && onToggle(run),
    ArrowLeft: () => isOpen && onToggle(run),
  });
  return (
    <div
      ref={refOf}
      data-index={index}
      role="row"
      className={`runrow level-${Math.min(level, 4)}${isChosen ? " chosen" : ""}`}
      aria-level={level + 1}
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      {...(has ? { "aria-expanded": isOpen } : {})}
      {...row}
    >
      <Cell of="col-choose"><input type="checkbox" aria-label={`choose ${plain(run.label)}`} checked={isChosen} tabIndex={-1} onChange={() => onChoose(run)} /></Cell>
      <Cell of="col-state"><StateChip run={run} /></Cell>
      <Cell of="col-run">
        {has ? (
          <button type="button" className="twist" tabIndex={-1} aria-label={isOpen ? "fold" : "unfold"} onClick={() => onToggle(run)}>
            {isOpen ? "▾" : "▸"}
          </button>
        ) : (
          <span className="twist" />
        )}
        <RunLink run={run} className="label" title={run.runId} tabIndex={-1} />
        {run.below !== null && run.below.runs > 0 && (
          <span className="note">
            {run.below.runs}
            {run.below.isBound && "+"}
          </span>
        )}
      </Cell>
      <Cell of="col-agent note">{run.agentId}</Cell>
      <Cell of="col-why">
        {run.below !== null && run.below.runs > 0 ? <span className="note">{inWords(countedStates(run.below.states))} · </span> : null}
        <Said text={whyOf(run)} />
      </Cell>
      <Cell of="col-att num">{run.attempt === 0 ? "–" : run.attempt}</Cell>
      <Cell of="col-started num"><Ago at={byEnd ? run.endedAt : run.startedAt} /></Cell>
      <Cell of="col-took num">{run.startedAt === null ? "–" : <Took from={run.startedAt} to={isEnded(run) ? run.endedAt : null} />}</Cell>
      <Cell of="col-tokens num"><Tokens run={run} /></Cell>
      <Cell of="col-cost num"><Cost run={run} /></Cell>
    </div>
  );
}
