// Where a run's time went: phases, attempts, checks, delivery and the runs below it as bars.
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { useRuns, useTimeline, useToolLines, useWhy } from "../../api/queries";
import type { RunDetail, RunRow, TimelineEvent } from "../../api/types";
import { BarCell, Bars, Legend, type Lane } from "../../components/bars";
import { Panel, Table } from "../../components/panel";
import { runAt } from "../../components/routes";
import { RunLink } from "../../components/run-link";
import { Said } from "../../components/said";
import { Answered } from "../../components/states";
import { useWords } from "../../live/clock";
import { count, counted, dollars } from "../../text/amounts";
import { withoutSign } from "../../text/alerts";
import { callsOf, type Call, type Used } from "../../text/tool-calls";
import { isEnded, stateOf } from "../../text/states";
import { mostly, segmentsOf, type Kind, type Segment } from "../../text/segments";
import { ms, span } from "../../text/times";

const CHILDREN = 30;
const CLOSE_UP_PARTS = 8;

export function TimelineTab({ run }: { run: RunDetail }) {
  const timeline = useTimeline(run.runId);
  const why = useWhy(run.runId);
  return (
    <>
      <Answered query={timeline}>{(found) => <Where run={run} events={found.events} />}</Answered>
      {timeline.data && <Calls run={run} events={timeline.data.events} />}
      <Panel title="Why, step by step" note={why.data && counted(why.data.steps.length, "line")}>
        <Answered query={why}>
          {(found) => (
            <ol className="steps">
              {found.steps.map((each, at) => (
                <li key={at}>
                  <code className="num">+{span((ms(each.occurredAt) ?? 0) - (ms(run.createdAt) ?? 0))}</code>
                  <Said text={each.text.startsWith("alert: ") ? `alert: ${withoutSign(each.text.slice(7))}` : each.text} />
                </li>
              ))}
            </ol>
          )}
        </Answered>
      </Panel>
    </>
  );
}

function Where({ run, events }: { run: RunDetail; events: readonly TimelineEvent[] }) {
  const children = useRuns({ tree: run.runId, limit: CHILDREN + 1 }).data;
  const [isClose, setClose] = useState(false);
  // To the second: a bar that grows needs no more.
  const now = useWords((at) => Math.floor(at / 1_000) * 1_000);
  const from = ms(run.createdAt) ?? now;
  const to = isEnded(run) ? Math.max(ms(run.endedAt) ?? now, from) : Math.max(now, from + 1);
  const asked = run.requests
    .filter((each) => each.priority === null)
    .map((each) => ({ from: ms(each.askedAt) ?? from, to: ms(each.answeredAt) }));
  const phases = segmentsOf(
    events.map((each) => ({ at: ms(each.occurredAt) ?? from, phase: each.phase })),
    asked,
    to,
  );
  const most = mostly(phases);
  const lanes: Lane[] = [
    { key: "run", label: "whole run", segments: phases, note: span(to - from) },
    ...run.attempts.map((each) => ({
      key: each.attemptId,
      label: `attempt ${each.number}`,
      segments: pieces(each.startedAt ?? each.requestedAt, each.endedAt, to, endKind(each.outcome?.status ?? null)),
      note: each.outcome?.status ?? "at work",
    })),
    ...(run.spec["verification"]
      ? [{ key: "checks", label: "verification", segments: phases.filter((each) => each.kind === "check"), note: run.verification?.status ?? "not yet" }]
      : []),
    {
      key: "delivery",
      label: "delivery",
      segments: (run.delivery?.tries ?? []).map((each) => ({ from: ms(each.triedAt) ?? to, to: ms(each.triedAt) ?? to, kind: "ok" as Kind })),
      note: run.outcome === null ? "not yet" : run.announcementConsumedAt === null ? "in the inbox" : "read",
    },
    ...(children?.runs ?? []).filter((each) => each.runId !== run.runId).slice(0, CHILDREN).reverse().map((each) => childLane(each, to)),
  ];
  const end = isClose ? from + (to - from) / CLOSE_UP_PARTS : to;
  const left = (children?.total ?? 0) - 1 - CHILDREN;
  return (
    <Panel
      title="Where the time went"
      note={most === null ? "nothing yet" : sentence(most)}
      right={
        <button type="button" className="plain" aria-pressed={isClose} onClick={() => setClose(!isClose)}>
          {isClose ? "whole run" : `the first ${span((to - from) / CLOSE_UP_PARTS)} close up`}
        </button>
      }
    >
      <Bars lanes={lanes} from={from} to={end} label="where the time of this run went" />
      {left > 0 && <p className="note body">{counted(left, "older run")} below it are not drawn.</p>}
      <Legend kinds={["work", "wait", "person", "check", "ok", "bad"]} />
    </Panel>
  );
}

const CALLS_SHOWN = 100;

/** Its tool calls along time; tokens and cost as far as its journal has them. */
function Calls({ run, events }: { run: RunDetail; events: readonly TimelineEvent[] }) {
  const log = useToolLines(run.runId).data;
  const [isByLength, setByLength] = useState(false);
  const [most, setMost] = useState(CALLS_SHOWN);
  const calls = useMemo(() => callsOf(log?.lines ?? [], usedOf(events)), [log, events]);
  const now = useWords((at) => Math.floor(at / 1_000) * 1_000);
  if (log === undefined || calls.length === 0) return null;
  const endOf = ({ attempt, to }: Call) => to ?? ms(run.attempts.find((each) => each.number === attempt)?.endedAt) ?? now;
  const lengthOf = (call: Call) => (call.from === null ? -1 : endOf(call) - call.from);
  const from = Math.min(...calls.map((each) => each.from ?? endOf(each)));
  const to = Math.max(from + 1, ...calls.map(endOf));
  const shown = (isByLength ? [...calls].sort((a, b) => lengthOf(b) - lengthOf(a)) : calls).slice(0, most);
  return (
    <Panel
      title="Tool calls"
      note={`${log.returnedLines < log.totalLines ? "the newest " : ""}${calls.length}; tokens and cost as told of since the call before, ? = not told`}
      right={<button type="button" className="plain" aria-pressed={isByLength} onClick={() => setByLength(!isByLength)}>longest first</button>}
    >
      <Table
        name="tool calls"
        columns={["call", "when", "time", "tokens", "cost"]}
        numbers={[2, 3, 4]}
        rows={shown.map((call) => [
          <Link href={`${runAt(run.runId, "transcript")}?line=${call.seq}`}>
            <Said text={`${call.name} ${call.asked}`.slice(0, 120)} mono />
          </Link>,
          <BarCell from={((call.from ?? endOf(call)) - from) / (to - from)} to={(endOf(call) - from) / (to - from)} kind={call.isError ? "bad" : call.to === null ? "work" : "ok"} />,
          call.from === null ? "?" : span(lengthOf(call)),
          call.tokens === null ? "?" : count(call.tokens),
          call.costUsd === null ? "?" : dollars(call.costUsd),
        ])}
      />
      {calls.length > shown.length && <button type="button" className="plain" onClick={() => setMost(calls.length)}>{calls.length - shown.length} more</button>}
    </Panel>
  );
}

/** The totals that an attempt told of, without what came from a cache. */
function usedOf(events: readonly TimelineEvent[]): Used[] {
  return events.flatMap(({ occurredAt, data }) => {
    const { attempt, signal } = data as { attempt: number; signal?: { usage?: Partial<Record<"tokensIn" | "tokensOut" | "tokensCacheRead" | "costUsd", number>> } };
    const usage = signal?.usage;
    if (usage === undefined) return [];
    const tokens = usage.tokensIn === undefined || usage.tokensOut === undefined ? null : usage.tokensIn + usage.tokensOut - (usage.tokensCacheRead ?? 0);
    return [{ at: ms(occurredAt) ?? 0, attempt, tokens, costUsd: usage.costUsd ?? null }];
  });
}

function childLane(run: RunRow, now: number): Lane {
  return {
    key: run.runId,
    label: (
      <RunLink run={run} />
    ),
    segments: pieces(run.startedAt, run.endedAt, now, endKind(run.outcome?.status ?? null)),
    note: stateOf(run).word,
  };
}

function endKind(status: string | null): Kind {
  return status === null || status === "cancelled" ? "work" : status === "ok" || status === "partial" ? "ok" : "bad";
}

function pieces(from: string | null, to: string | null, now: number, kind: Kind): Segment[] {
  const begin = ms(from);
  return begin === null ? [] : [{ from: begin, to: ms(to) ?? now, kind }];
}

function sentence({ kind, length, of }: { kind: Kind; length: number; of: number }): string {
  const words: Record<Kind, string> = {
    ...{ work: "it was at work", wait: "it waited", person: "it waited for an answer" },
    ...{ check: "it was checked", ok: "it was at work", bad: "it was at work" },
  };
  return `${span(length)} of ${span(of)} ${words[kind]}`;
}
