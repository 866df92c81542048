// A plan as one row of the table of runs; its steps come below it when it is unfolded.
import { Link, useLocation } from "wouter";
import type { RunRow } from "../api/types";
import { counted } from "../text/amounts";
import { plain } from "../text/marks";
import { countedStates, inWords } from "../text/plan-rows";
import { stateOf } from "../text/states";
import { WordChip } from "./chip";
import { planAt } from "./routes";
import { Cell, useRow } from "./rows";
import type { RowProps } from "./run-table";
import { Said } from "./said";
import { Ago } from "./when";

export function PlanRow({ refOf, index, run, isOpen, isChosen, onToggle, onChoose }: RowProps) {
  const [, navigate] = useLocation();
  const name = run.planName ?? run.runId;
  const states = countedStates(run.below?.states, stateOf({ ...run, verdict: null }).word);
  const toggle = () => onToggle(run);
  const keys = { Enter: toggle, o: () => navigate(planAt(run.runId)), v: () => onChoose(run) };
  const row = useRow(`plan/${run.runId}`, index === 0, { ...keys, ArrowRight: () => isOpen || toggle(), ArrowLeft: () => isOpen && toggle() });
  return (
    <div ref={refOf} data-index={index} role="row" className={`runrow${isChosen ? " chosen" : ""}`} aria-level={1} aria-rowindex={index + 2} aria-selected={isChosen} aria-expanded={isOpen} {...row}>
      <Cell of="col-choose"><input type="checkbox" aria-label={`choose ${plain(name)}`} checked={isChosen} tabIndex={-1} onChange={() => onChoose(run)} /></Cell>
      <Cell of="col-state"><WordChip word={states[0]?.[0] ?? "ok"} /></Cell>
      <Cell of="col-run">
        <button type="button" className="twist" tabIndex={-1} aria-label={isOpen ? "fold" : "unfold"} onClick={toggle}>
          {isOpen ? "▾" : "▸"}
        </button>
        <button type="button" className="plain label" tabIndex={-1} onClick={toggle}>
          <Said text={name} />
        </button>
        <span className="note">{counted((run.below?.runs ?? 0) + 1, "run")}</span>
      </Cell>
      <Cell of="col-agent"><Link href={planAt(run.runId)} tabIndex={-1}>plan</Link></Cell>
      <Cell of="col-why">{inWords(states)}</Cell>
      <Cell of="col-att" />
      <Cell of="col-started num"><Ago at={run.createdAt} /></Cell>
    </div>
  );
}

/** Of what is unfolded only so many are here: the rest is a list of its own. */
export function MoreRow({ refOf, index, run, words }: { refOf: RowProps["refOf"]; index: number; run: RunRow; words: string }) {
  const search = new URLSearchParams({ q: `${run.planId === run.runId ? "plan" : "tree"}:${run.runId}` });
  return (
    <div ref={refOf} data-index={index} role="row" className="runrow level-1" aria-level={2} aria-rowindex={index + 2}>
      <Cell of="col-why">{words} <Link href={`/runs?${search}`}>all of them</Link></Cell>
    </div>
  );
}
