// What attempts came to, over time and by who did them: failures, how long they took, what was spent. What
// nobody reported is unknown, and not 0.
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useDiagnostics, useRuns, useRunsSince, useSchedules, useSeries, useTrackRecords } from "../api/queries";
import type { ScheduleRow, Series, SeriesBucket, TrackRecords } from "../api/types";
import { BarCell } from "../components/bars";
import { BudgetBar, Dollars, Usd } from "../components/cost";
import { Choice } from "../components/form";
import { Heading } from "../components/heading";
import { Panel, Table } from "../components/panel";
import { RunLink } from "../components/run-link";
import { Answered, Empty } from "../components/states";
import { Ahead } from "../components/when";
import { useAddress } from "../live/address";
import { asked } from "../text/filter";
import { count, counted, dollars, NOT_REPORTED } from "../text/amounts";
import { clockSeconds, ms, span } from "../text/times";
import { waitOf, waitsIn } from "../text/waits";

const UTC_DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });
const FAILED = new Set(["error", "timeout", "lost", "partial"]);

export default function CostPage() {
  const [inAddress, put] = useAddress();
  const [days, by, only] = [Number(inAddress("days") || 14), inAddress("by") || "agent", inAddress("only")];
  // The runs of a schedule have its tag.
  const field = by === "schedule" ? "tag" : by;
  const series = useSeries({ by: "outcome", bucket: days === 1 ? "hour" : "day", days, [field]: only || null });
  const records = useTrackRecords(field, days);
  const schedules = useSchedules().data?.schedules ?? [];
  const groups: Grouped | undefined = records.data && (by === "schedule" ? ofSchedules(records.data, schedules) : records.data);
  const names = groups?.stats.flatMap(({ name }) => name ?? []) ?? [];
  const words = only === "" ? [] : [wordOf(field, only)];
  const since = series.data?.buckets[0]?.beginsAt ?? "";
  return (
    <>
      <Heading title="Cost" note="and failures, as attempts ended; US dollars as the workers report them" />
      <div className="filters">
        <Choice name="how far back" value={days} options={[1, 7, 14, 30].map((each) => [each, each === 1 ? "today" : `${each} days`])} onChoose={(next) => put("days", next)} />
        <Choice name="added up by" value={by} options={["agent", "model", "tag", "schedule"].map((each) => [each, `by ${each}`])} onChoose={(next) => (put("only", ""), put("by", next))} />
        <Choice name="whose attempts" value={only} options={[["", `all ${by}s`], ...(names.includes(only) || only === "" ? names : [...names, only]).map((each) => [each, groups?.labelOf?.(each) ?? each] as const)]} onChoose={(next) => put("only", next)} />
      </div>
      <Answered query={series}>{(found) => <OverTime series={found} words={words} />}</Answered>
      <Answered query={records}>{(found) => <Groups found={groups ?? found} since={since} />}</Answered>
      {series.data && <InLine series={series.data} since={since} words={words} />}
      <Shared />
      <Trees />
    </>
  );
}

/** Of the sums by tag those of schedules, by their names. */
function ofSchedules({ stats }: TrackRecords, schedules: readonly ScheduleRow[]): Grouped {
  const names = new Map(schedules.map((each) => [each.tag, each.name]));
  return { by: "schedule", stats: stats.filter(({ name }) => names.has(name ?? "")), labelOf: (tag) => names.get(tag) ?? tag };
}

/** The list of runs that were spawned in a time, with more of a filter. */
function runsIn(since: string, until: string, words: readonly string[], sort = ""): string {
  const given = { q: words.join(" "), time: `${since}/${until}`, sort, ...(words.length === 0 ? { flat: "1" } : {}) };
  return `/runs?${new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ""))}`;
}

const dayOf = (since: string, bucket: string) => (bucket === "day" ? UTC_DAY.format(new Date(since)) : since.slice(11, 16));
const wordOf = (name: string, value: string) => `${name}:${/\s/.test(value) ? `"${value}"` : value}`;
const failedIn = ({ sums }: Pick<SeriesBucket, "sums">) => sums.reduce((sum, each) => sum + (FAILED.has(each.name ?? "") ? each.attempts : 0), 0);

/** Each hour or day, the newest first; each bar is a link to the runs of its time. */
function OverTime({ series, words }: { series: Series; words: readonly string[] }) {
  const { buckets, total } = series;
  const most = { failed: Math.max(1, ...buckets.map(failedIn)), usd: Math.max(0.01, ...buckets.map((each) => each.total.costUsd ?? 0)) };
  const rows = buckets.map((bucket, at) => {
    const [since, until, failed] = [bucket.beginsAt ?? "", buckets[at + 1]?.beginsAt ?? "", failedIn(bucket)];
    const { attempts, costUsd, costKnownOf } = bucket.total;
    return [
      <Link href={runsIn(since, until, words)}>{dayOf(since, series.bucket)}</Link>,
      attempts === 0 ? "–" : attempts,
      failed > 0 && <BarLink to={runsIn(since, until, [...words, "state:failed"])} part={failed / most.failed} kind="bad" text={`${failed} failed`} />,
      costUsd !== null ? <BarLink to={runsIn(since, until, words, "cost")} part={costUsd / most.usd} kind="work" text={dollars(costUsd)} /> : attempts > 0 && <Usd usd={null} />,
      attempts > 0 && `${costKnownOf} of ${attempts}`,
    ];
  });
  return (
    <>
      <div className="tiles box">
        <Tile title="Failed" value={counted(failedIn(series), "attempt")} note={`of ${counted(total.attempts, "attempt")} that ended`} />
        <Tile title="Reported" value={<Usd usd={total.costUsd} />} note={`by ${total.costKnownOf} of ${counted(total.attempts, "attempt")} that ended`} />
        <Tile title="Not reported" value={counted(total.attempts - total.costKnownOf, "attempt")} note="unknown, not zero" />
      </div>
      <Panel title={`By ${series.bucket}`} note={`in UTC, by when attempts ended; a link shows the runs that were spawned in that ${series.bucket}`}>
        <Table name="over time" columns={[series.bucket, "attempts", "failed", "reported", "cost known of"]} numbers={[1, 4]} rows={rows.reverse()} />
      </Panel>
    </>
  );
}

function Tile({ title, value, note }: { title: string; value: ReactNode; note: string }) {
  return (
    <div>
      <h2>{title}</h2>
      <strong>{value}</strong>
      <p className="note">{note}</p>
    </div>
  );
}

function BarLink({ to, part, kind, text }: { to: string; part: number; kind: "bad" | "work" | "wait"; text: string }) {
  return (
    <Link href={to} className="barlink">
      <BarCell from={0} to={part} kind={kind} /> {text}
    </Link>
  );
}

type Grouped = Pick<TrackRecords, "by" | "stats"> & { labelOf?: (name: string) => string };

/** What each agent, model, tag or schedule came to; the lengths are of the newest attempts. */
function Groups({ found: { by, stats, labelOf = (name) => name }, since }: { found: Grouped; since: string }) {
  return (
    <Panel title={`By ${by}`} note="failed but for refusals of a provider; lengths of the newest attempts">
      {stats.length === 0 ? (
        <Empty title="No attempt ended in this time" />
      ) : (
        <Table
          name="groups"
          columns={[by, "attempts", "failed", "p50", "p95", "tokens", "reported", "cost known of"]}
          numbers={[1, 2, 3, 4, 5, 6, 7]}
          rows={stats.map(({ name, attemptCount, outcomes, took, tokens, tokensKnown, costUsd, costKnown }) => [
            name === null ? by === "model" ? "the program’s own choice" : "–" : <Link href={runsIn(since, "", [wordOf(by === "schedule" ? "tag" : by, name)])}>{labelOf(name)}</Link>,
            attemptCount,
            ["failure", "timeout", "partial"].reduce((sum, each) => sum + (outcomes[each] ?? 0), 0),
            took === null ? "–" : span(took.p50Ms),
            took === null ? "–" : span(took.p95Ms),
            tokensKnown === 0 ? <em>{NOT_REPORTED}</em> : count((tokens.input ?? 0) + (tokens.output ?? 0) - (tokens.cacheRead ?? 0)),
            <Usd usd={costUsd} />,
            `${costKnown} of ${attemptCount}`,
          ])}
        />
      )}
    </Panel>
  );
}

/** How many runs waited to begin at once, and for how long: for a slot, for other runs, or for a person. */
function InLine({ series: { bucket, buckets }, since, words }: { series: Series; since: string; words: readonly string[] }) {
  const runs = useRunsSince(since, asked(words.join(" ")));
  if (runs.data === undefined) return <Answered query={runs}>{() => null}</Answered>;
  const { runs: rows, nowAt, total } = runs.data;
  const begins = buckets.map((each) => ms(each.beginsAt) ?? 0);
  const waits = waitsIn(begins, rows.map(waitOf(ms(nowAt) ?? 0)));
  const most = Math.max(1, ...waits.map((each) => each.most));
  const isCut = (total ?? 0) > rows.length;
  return (
    <Panel title="Waited to begin" note={`${isCut ? `of the newest ${rows.length.toLocaleString("en")} runs` : `of ${counted(rows.length, "run")}`}, for a slot, other runs or a person; as of ${clockSeconds(ms(nowAt) ?? 0)}`}>
      {waits.every((each) => each.most === 0) ? (
        <Empty title="No run had to wait" />
      ) : (
        <Table
          name="waited to begin"
          columns={[bucket, "at once", "longest"]}
          numbers={[2]}
          rows={waits
            .map(({ most: atOnce, longestMs }, at) => [
              dayOf(buckets[at]?.beginsAt ?? "", bucket),
              atOnce > 0 && <BarLink to={runsIn(buckets[at]?.beginsAt ?? "", buckets[at + 1]?.beginsAt ?? "", words)} part={atOnce / most} kind="wait" text={`${atOnce}`} />,
              atOnce > 0 && span(longestMs),
            ])
            .filter(([, bar]) => bar)
            .reverse()}
        />
      )}
    </Panel>
  );
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
          <RunLink run={run} />,
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
