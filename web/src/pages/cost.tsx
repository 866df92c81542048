// What was spent, by day, agent, model and tree. What nobody reported is unknown, and not 0.
import { useState } from "react";
import { Link } from "wouter";
import { useDiagnostics, useRuns, useSeries } from "../api/queries";
import type { Series, SeriesSum } from "../api/types";
import { BudgetBar, Dollars } from "../components/cost";
import { DayBars } from "../components/day-bars";
import { Heading } from "../components/heading";
import { Panel, TableBox } from "../components/panel";
import { runAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { Ahead } from "../components/when";
import { cached, count, counted, dollars, NOT_REPORTED } from "../text/amounts";

export default function CostPage() {
  const [days, setDays] = useState(14);
  const [by, setBy] = useState("agent");
  const daily = useSeries("cost", days);
  const groups = useSeries(by, days);
  return (
    <>
      <Heading title="Cost" note="US dollars as the workers report them" />
      <div className="filters">
        <select aria-label="how far back" value={days} onChange={(event) => setDays(Number(event.target.value))}>
          {[1, 7, 14, 30].map((each) => (
            <option key={each} value={each}>
              {each === 1 ? "today" : `${each} days`}
            </option>
          ))}
        </select>
        <select aria-label="added up by" value={by} onChange={(event) => setBy(event.target.value)}>
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
          <strong>{all.costUsd === null ? <em>{NOT_REPORTED}</em> : dollars(all.costUsd)}</strong>
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
          <TableBox name="by day">
            <thead>
              <tr>
                <th scope="col">day</th>
                <th scope="col" className="num">
                  reported
                </th>
                <th scope="col" className="num">
                  known of
                </th>
              </tr>
            </thead>
            <tbody>
              {days.map((each) => (
                <tr key={each.at}>
                  <td>{each.at.slice(0, 10)}</td>
                  <td className="num">{each.usd === null ? each.attempts === 0 ? "–" : <em>{NOT_REPORTED}</em> : dollars(each.usd)}</td>
                  <td className="num">
                    {each.known} of {each.attempts}
                  </td>
                </tr>
              ))}
            </tbody>
          </TableBox>
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
        <TableBox name="groups">
          <thead>
            <tr>
              <th scope="col">{by}</th>
              <th scope="col" className="num">
                attempts
              </th>
              <th scope="col" className="num">
                tokens
              </th>
              <th scope="col" className="num">
                reported
              </th>
              <th scope="col">known of</th>
            </tr>
          </thead>
          <tbody>
            {series.sums.map((sum) => (
              <tr key={sum.name ?? ""}>
                <td>{sum.name ?? (by === "model" ? "the program’s own choice" : "–")}</td>
                <td className="num">{sum.attempts}</td>
                <td className="num">{tokensOf(sum)}</td>
                <td className="num">{sum.costUsd === null ? <em>{NOT_REPORTED}</em> : dollars(sum.costUsd)}</td>
                <td className="note">
                  {sum.costKnownOf} of {sum.attempts}
                </td>
              </tr>
            ))}
          </tbody>
        </TableBox>
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
      <TableBox name="shared budgets">
        <tbody>
          {budgets.map((each) => (
            <tr key={each.key}>
              <td>
                <code>{each.key}</code>
              </td>
              <td className={each.exhausted ? "bad" : ""}>
                {each.text}
                {each.exhausted && ": exhausted"}
              </td>
              <td className="note">
                {each.costUnknownRuns > 0 && `${counted(each.costUnknownRuns, "run")} not reported`}
                {each.untilAt && (
                  <>
                    {" "}
                    until <Ahead at={each.untilAt} />
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </TableBox>
    </Panel>
  );
}

/** The newest trees: what each came to, and how full its budget is. */
function Trees() {
  const runs = useRuns({ roots: true, limit: 50 }).data?.runs.filter((run) => run.subtreeUsage !== null || run.budget !== null) ?? [];
  if (runs.length === 0) return null;
  return (
    <Panel title="Trees" note="of the newest 50 runs that nobody spawned, those with a budget or runs below">
      <TableBox name="trees">
        <thead>
          <tr>
            <th scope="col">tree</th>
            <th scope="col" className="num">
              cost
            </th>
            <th scope="col">budget</th>
            <th scope="col">not counted</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.runId}>
              <td>
                <Link href={runAt(run.runId)}>
                  <Said text={run.label} />
                </Link>
              </td>
              <td className="num">
                <Dollars usage={run.subtreeUsage ?? run.usage} />
              </td>
              <td>
                {run.budget === null ? <span className="note">none</span> : (
                  <>
                    <BudgetBar budget={run.budget} /> <span className="note">{run.budget.text}</span>
                  </>
                )}
              </td>
              <td className="note">
                {(run.subtreeUsage?.costUnknownRuns ?? 0) > 0 && `${counted(run.subtreeUsage?.costUnknownRuns ?? 0, "run")} not reported`}
              </td>
            </tr>
          ))}
        </tbody>
      </TableBox>
    </Panel>
  );
}
