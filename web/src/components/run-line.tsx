// One run in a list: state · label and agent · why · age · cost · budget · what can be done.
import type { ReactNode } from "react";
import { useLocation } from "wouter";
import type { RunRow } from "../api/types";
import { copy } from "./states";
import { StateChip } from "./chip";
import { BudgetBar, Cost } from "./cost";
import { useRow } from "./rows";
import { runAt } from "./routes";
import { RunLink } from "./run-link";
import { Said } from "./said";
import { Ago } from "./when";
import { peeked } from "../live/notices";
import { plain } from "../text/marks";

type Props = {
  run: RunRow;
  isFirst: boolean;
  keys?: Record<string, () => void>;
  /** A second line below why. */
  more?: ReactNode;
  children?: ReactNode;
};

export function RunLine({ run, isFirst, keys = {}, more, children }: Props) {
  const [, navigate] = useLocation();
  const row = useRow(run.runId, isFirst, {
    Enter: () => navigate(runAt(run.runId)),
    o: () => navigate(runAt(run.runId)),
    Space: () => peeked.set(run),
    y: () => void copy(run.runId),
    ...keys,
  });
  return (
    <li className={more === undefined ? "line" : "line tall"} {...row}>
      <StateChip run={run} />
      <span className="name">
        <RunLink run={run} className="label" title={run.runId} tabIndex={-1} />
        <span className="note">{run.agentId}</span>
      </span>
      <span className="why">
        <Said text={whyOf(run)} />
        {more !== undefined && <small>{more}</small>}
      </span>
      <span className="age num">
        <Ago at={signOf(run)} />
      </span>
      <span className="cost num">
        <Cost run={run} />
      </span>
      <span className="budgetcell num">
        {run.budget !== null ? <BudgetBar budget={run.budget} /> : run.chargedTo !== null && <span>↑ {plain(run.chargedTo.label)}</span>}
      </span>
      <span className="acts">{children}</span>
    </li>
  );
}

/** Why it is where it is: what its worker said last of how far it is goes before our own words. */
export function whyOf(run: RunRow): string {
  const progress = run.latestProgress;
  if (run.outcome === null && run.phase === "running" && progress !== null) {
    const percent = progress.percentComplete;
    return percent === null ? progress.phase : `${Math.round(percent)} % ${progress.phase}`;
  }
  return run.blockedReason ?? run.why ?? "";
}

/** Its end, or the last that was heard of it. */
export function signOf(run: RunRow): string | null {
  return run.endedAt ?? run.lastSignAt ?? run.phaseSinceAt;
}
