// Costs and budgets. What nobody told of is said to be so, and is never shown as 0.
import type { BudgetState, RunRow, Usage } from "../api/types";
import { WARN_PERCENT } from "../live/notices";
import { cached, count, dollars, NOT_REPORTED } from "../text/amounts";

/** The cost of a run's own attempts, or that of all below it when it has any. */
export function Cost({ run }: { run: Pick<RunRow, "usage" | "subtreeUsage" | "attempt"> }) {
  const usage = run.subtreeUsage ?? run.usage;
  if (run.attempt === 0 && usage === null) return <span>–</span>;
  return <Dollars usage={usage} />;
}

export function Dollars({ usage }: { usage: Usage | null }) {
  const usd = usage?.costUsd ?? null;
  if (usd === null) return <Usd usd={usd} />;
  const unknown = usage?.costUnknownRuns ?? 0;
  const title = unknown === 0 ? undefined : `at least: ${unknown} of its runs did not report`;
  return (
    <span title={title}>
      {dollars(usd)}
      {unknown > 0 && " +"}
    </span>
  );
}

/** An amount by itself; null = nobody told of it. */
export function Usd({ usd }: { usd: number | null }) {
  return usd === null ? <em>{NOT_REPORTED}</em> : <>{dollars(usd)}</>;
}

export function Tokens({ run }: { run: Pick<RunRow, "usage" | "subtreeUsage" | "attempt"> }) {
  const usage = run.subtreeUsage ?? run.usage;
  const known = usage?.tokens ?? null;
  if (known !== null) return <span title={cached(usage)}>{count(known)}</span>;
  return run.attempt === 0 ? <span>–</span> : <em title={NOT_REPORTED}>?</em>;
}

/** How full a budget is; what is not known to be used has no bar. */
export function BudgetBar({ budget }: { budget: Pick<BudgetState, "percent" | "text" | "exhausted"> }) {
  if (budget.percent === null) return <em title={budget.text}>?</em>;
  const hue = budget.exhausted ? "bad" : budget.percent >= WARN_PERCENT ? "you" : "idle";
  return (
    <span className={`budget ${hue}`} title={budget.text}>
      <svg width="44" height="6" aria-hidden="true">
        <rect className="track" width="100%" height="6" rx="3" />
        <rect className="fill" width={`${Math.min(budget.percent, 100)}%`} height="6" rx="3" />
      </svg>
      {budget.percent} %
    </span>
  );
}
