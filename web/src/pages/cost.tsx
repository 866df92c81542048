// What was spent, by day, agent, model and tree. What nobody reported is unknown, and not 0.
import { useState } from "react";
import { Link } from "wouter";
import { useDiagnostics, useRuns, useSeries } from "../api/queries";
import type { Series, SeriesSum } from "../api/types";
import { BudgetBar, Dollars, Usd } from "../components/cost";
import { DayBars } from "../components/day-bars";
import { Heading } from "../components/heading";
import { Panel, Table } from "../components/panel";
import { runAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { Ahead } from "../components/when";
import { useAddress } from "../live/address";
import { cached, count, counted, NOT_REPORTED } from "../text/amounts";

export default function CostPage() {
  const [inAddress, put] = useAddress();
  const [days, by] = [Number(inAddress("days") || 14), inAddress("by") || "agent"];
  const daily = useSeries("cost", days);
  const groups = useSeries(by, days);
  return (
    <>
      <Heading title="Cost" note="US dollars as the workers report them" />
      <div className="filters">
        <select aria-label="how far back" value={days} onChange={(event) => put("days", event.target.value)}>
          {[1, 7, 14, 30].map((each) => (
            <option key={each} value={each}>
              {each === 1 ? "today" : `${each} days`}
            </option>
          ))}
        </select>
        <select aria-label="added up by" value={by} onChange={(event) => put("by", event.target.value)}>
          {["agent", "model", "outcome"].map((each) => (
            <option key={each} value={each}>
              by {each}
            </option>
          ))}
        </select>
      </div>
      <Answered query={daily}>{(found) => <Daily series={found} />}</Answered>
      <Answered query={groups}>{(found) => <Groups series={found} by={by} />}</Answered>
      <Shared />
      <Trees />
    </>
  );
}

function Daily({ series }: { series: Series }) {
  const days = series.buckets.map(({ beginsAt, total }) => ({
    at: beginsAt ?? "",
    usd: total.costUsd,
    known: total.costKnownOf,
    attempts: total.attempts,
  }));
  const all = series.total;
  const [isTable, setTable] = useState(false);
  return (
    <>
      <div className="tiles box">
        <div>
          <h2>Reported</h2>
          <strong>
            <Usd usd={all.costUsd} />
          </strong>
          <p className="note">
            by {all.costKnownOf} of {counted(all.attempts, "attempt")} that ended
          </p>
        </div>
        <div>
          <h2>Not reported</h2>
          <strong>{counted(all.attempts - all.costKnownOf, "attempt")}</strong>
          <p className="note">unknown, not zero</p>
        </div>
      </div>
      <Panel
        title="By day"
        note={`UTC days; ${counted(days.length, "day")}`}
        right={
          <button type="button" className="plain" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            {isTable ? "as bars" : "as a table"}
          </button>
        }
      >
        {isTable ? (
          <Table
            name="by day"
            columns={["day", "reported", "known of"]}
            numbers={[1, 2]}
            rows={days.map((each) => [each.at.slice(0, 10), each.attempts === 0 ? "–" : <Usd usd={each.usd} />, `${each.known} of ${each.attempts}`])}
          />
        ) : (
          <DayBars days={days.map(({ at, usd, known, attempts }) => ({ at, usd, unknown: attempts - known }))} />
        )}
      </Panel>
    </>
  );
}

function Groups({ series, by }: { series: Series; by: string }) {
  return (
    <Panel title={`By ${by}`}>
      {series.sums.length === 0 ? (
        <Empty title="No attempt ended in this time" />
      ) : (
        <Table
          name="groups"
          columns={[by, "attempts", "tokens", "reported", "known of"]}
          numbers={[1, 2, 3]}
          rows={series.sums.map((sum) => [
            sum.name ?? (by === "model" ? "the program’s own choice" : "–"),
            sum.attempts,
            tokensOf(sum),
            <Usd usd={sum.costUsd} />,
            `${sum.costKnownOf} of ${sum.attempts}`,
          ])}
        />
      )}
    </Panel>
  );
}

function tokensOf(sum: SeriesSum) {
  return sum.tokens === null ? <em>{NOT_REPORTED}</em> : <span title={cached(sum)}>{count(sum.tokens)}</span>;
}

/** Caps of the configuration and of plans. */
function Shared() {
  const budgets = useDiagnostics().data?.budgets ?? [];
  if (budgets.length === 0) return null;
  return (
    <Panel title="Shared budgets" note={`${budgets.length}`}>
      <Table
        name="shared budgets"
        rows={budgets.map((each) => [
          <code>{each.key}</code>,
          <span className={each.exhausted ? "bad" : ""}>
            {each.text}
            {each.exhausted && ": exhausted"}
          </span>,
          <span className="note">
            {each.costUnknownRuns > 0 && `${counted(each.costUnknownRuns, "run")} not reported`}
            {each.untilAt && (
              <>
                {" "}
                until <Ahead at={each.untilAt} />
              </>
            )}
          </span>,
        ])}
      />
    </Panel>
  );
}

/** The newest trees: what each came to, and how full its budget is. */
function Trees() {
  const runs = useRuns({ roots: true, limit: 50 }).data?.runs.filter((run) => run.subtreeUsage !== null || run.budget !== null) ?? [];
  if (runs.length === 0) return null;
  return (
    <Panel title="Trees" note="of the newest 50 runs that nobody spawned, those with a budget or runs below">
      <Table
        name="trees"
        columns={["tree", "cost", "budget", "not counted"]}
        numbers={[1]}
        rows={runs.map((run) => [
          <Link href={runAt(run.runId)}>
            <Said text={run.label} />
          </Link>,
          <Dollars usage={run.subtreeUsage ?? run.usage} />,
          run.budget === null ? (
            <span className="note">none</span>
          ) : (
            <>
              <BudgetBar budget={run.budget} /> <span className="note">{run.budget.text}</span>
            </>
          ),
          (run.subtreeUsage?.costUnknownRuns ?? 0) > 0 && `${counted(run.subtreeUsage?.costUnknownRuns ?? 0, "run")} not reported`,
        ])}
      />
    </Panel>
  );
}
