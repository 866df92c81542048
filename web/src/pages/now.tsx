// The home page: who needs somebody, what goes on, what waits and for what, what just ended.
import { memo, useMemo, useState } from "react";
import { Link } from "wouter";
import { cancel, markRead, redeliver, retry, retryPlan, retrySoon, soon } from "../api/actions";
import { NOW_ROWS, useAttention, useEnded, useFailed, useWaiting, useWorking } from "../api/queries";
import type { Attention, AttentionItem, RunPage, RunRow } from "../api/types";
import { Act } from "../components/act";
import { StateChip, WordChip } from "../components/chip";
import { Cost } from "../components/cost";
import { FirstSteps } from "../components/first-steps";
import { Heading } from "../components/heading";
import { Questions } from "../components/question-card";
import { RowScope, useRow } from "../components/rows";
import { RunLine } from "../components/run-line";
import { RunLink } from "../components/run-link";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { needsSomebody } from "../components/title";
import { Ago, Ahead } from "../components/when";
import { counted } from "../text/amounts";
import { plain } from "../text/marks";
import { causesOf, type Cause } from "../text/causes";
import { byCause, type Cause as Failure } from "../text/failures";

export function NowPage() {
  const attention = useAttention();
  const working = useWorking();
  const waiting = useWaiting();
  const ended = useEnded();
  const needs = attention.data?.items.filter(needsSomebody) ?? [];
  const isNew = [working, waiting, ended].every((each) => each.data?.runs.length === 0) && needs.length === 0;
  return (
    <RowScope>
      <Heading title="Now" />
      {isNew ? (
        <FirstSteps />
      ) : (
        <>
          <Answered query={attention}>
            {(found) => <NeedsYou attention={found} working={working.data} waiting={waiting.data} />}
          </Answered>
          <Answered query={working}>
            {(found) => <Working page={found} isFirst={needs.length === 0} attention={attention.data} />}
          </Answered>
          <Answered query={waiting}>{(found) => <Waiting page={found} />}</Answered>
          <Answered query={ended}>{(found) => <JustEnded page={found} />}</Answered>
        </>
      )}
    </RowScope>
  );
}

function NeedsYou({
  attention,
  working,
  waiting,
}: {
  attention: Attention;
  working: RunPage | undefined;
  waiting: RunPage | undefined;
}) {
  const items = attention.items.filter(needsSomebody);
  const asked = items.filter((each) => each.requestId !== null);
  // The same answer has the same items, so that lines of failures are drawn only when one changes.
  const others = useMemo(() => attention.items.filter((each) => needsSomebody(each) && each.requestId === null), [attention.items]);
  const rows = useFailed(others.map((each) => each.runId));
  const causes = useMemo(() => byCause(others, rows), [others, rows]);
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? causes : causes.slice(0, CAUSES_SHOWN);
  const failed = others.filter((each) => each.kind === "failed");
  if (items.length === 0) {
    return (
      <section aria-label="needs you">
        <SectionHead title="Needs you" number={0} />
        <div className="box">
          <Empty title="Nothing needs you">
            <p>
              {counted(working?.runs.length ?? 0, "is working", "are working")},{" "}
              {counted(waiting?.runs.length ?? 0, "waits", "wait")} for something that is not you. The next question shows
              up here and in the title of this tab.
            </p>
          </Empty>
        </div>
      </section>
    );
  }
  const note = [
    asked.length > 0 && `${counted(asked.length, "worker waits", "workers wait")} for an answer`,
    failed.length > 0 && `${counted(failed.length, "failure is", "failures are")} unread`,
  ].filter(Boolean);
  return (
    <section aria-label="needs you">
      <SectionHead title="Needs you" number={items.length} note={note.join(", ")}>
        {failed.length > 1 && (
          <Act className="plain" onClick={() => void markRead(failed)}>Mark all failures as read</Act>
        )}
      </SectionHead>
      <Questions requests={attention.requests} />
      {others.length > 0 && (
        <ul className="box lines">
          {shown.map((cause, at) => (
            <NeedLine key={keyOf(cause)} cause={cause} rows={rows} isFirst={asked.length === 0 && at === 0} />
          ))}
          {causes.length > shown.length && (
            <li className="rest">
              <button type="button" className="plain" onClick={() => setOpen(true)}>{causes.length - shown.length} more</button>
            </li>
          )}
        </ul>
      )}
    </section>
  );
}

const NEED_WORDS: Record<string, string> = { failed: "error", blocker: "blocked" };

/** So many causes at first, and so many runs of one that is unfolded. */
const CAUSES_SHOWN = 6;
const MEMBERS_SHOWN = 8;

/** A cause by its oldest: that one stays the same while others come. */
const keyOf = ({ items }: Failure<AttentionItem>) => `${items.at(-1)?.kind}/${items.at(-1)?.runId}`;

type NeedProps = { cause: Failure<AttentionItem>; rows: ReadonlyMap<string, RunRow>; isFirst: boolean };

/** What needs somebody and is no question: failures nobody read, a delivery that was given up. */
const NeedLine = memo(function NeedLine({ cause, rows, isFirst }: NeedProps) {
  const [isOpen, setOpen] = useState(false);
  const { items, dependants } = cause;
  const [item, ...others] = items as readonly [AttentionItem, ...AttentionItem[]];
  const run = rows.get(item.runId);
  // What depended on it starts again with its plan alone.
  const plans = dependants.length > 0 ? new Set(items.map((each) => rows.get(each.runId)?.planId)) : [];
  const [plan = null] = [...plans].length === 1 ? plans : [];
  const isFailure = item.kind === "failed";
  const isUndelivered = item.kind === "undelivered";
  const settle = () => void markRead([...items, ...dependants]);
  const again = () => void (isUndelivered ? redeliver(item) : plan !== null ? retryPlan(plan) : others.length > 0 ? retrySoon(items) : retry(items));
  const unfold = () => (others.length + dependants.length > 0 ? setOpen(!isOpen) : document.getElementById(`need-${item.runId}`)?.click());
  const row = useRow(keyOf(cause), isFirst, {
    Enter: unfold,
    o: () => document.getElementById(`need-${item.runId}`)?.click(),
    r: () => (isUndelivered ? again() : plan !== null ? soon(`Plan ${plain(run?.planName ?? plan)}`, () => retryPlan(plan)) : retrySoon(items)),
    x: settle,
  });
  const more = [others.length > 0 && `${counted(others.length, "other")} like it`, dependants.length > 0 && counted(dependants.length, "depends on it", "depend on it")];
  return (
    <li className="line need" {...row}>
      {isFailure && run !== undefined ? <StateChip run={run} /> : <WordChip word={NEED_WORDS[item.kind] ?? item.kind} />}
      <span className="name">
        <RunLink run={item} id={`need-${item.runId}`} className="label" tabIndex={-1} />
        <span className="note">{run?.agentId}</span>
      </span>
      <span className="why">
        <Said text={item.text} />
        {run !== undefined && <Claimed run={run} />}
      </span>
      <span className="age num">
        <Ago at={item.sinceAt} />
      </span>
      <span className="cost num">{run !== undefined && <Cost run={run} />}</span>
      <span className="acts">
        <Act className="plain" onClick={again}>
          {isUndelivered ? "Deliver again" : plan !== null ? "Retry plan" : others.length > 0 ? `Retry ${items.length}` : "Retry"}
        </Act>
        {!isUndelivered && (
          <Act className="plain" title="mark as read (x)" aria-label="mark as read" onClick={settle}>
            ✓
          </Act>
        )}
      </span>
      {others.length + dependants.length > 0 && (
        <button type="button" className="plain unfold" tabIndex={-1} aria-expanded={isOpen} onClick={unfold}>
          {isOpen ? "▾" : "▸"} and {more.filter(Boolean).join(", ")}
        </button>
      )}
      {isOpen && <Members items={[...others, ...dependants]} />}
    </li>
  );
});

function Members({ items }: { items: readonly AttentionItem[] }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? items : items.slice(0, MEMBERS_SHOWN);
  return (
    <ul className="members">
      {shown.map((each) => (
        <li key={each.runId}>
          <RunLink run={each} />{" "}
          <span className="note">
            <Ago at={each.sinceAt} />
          </span>
        </li>
      ))}
      {items.length > shown.length && (
        <li>
          <button type="button" className="plain" onClick={() => setWhole(true)}>{items.length - shown.length} more</button>
        </li>
      )}
    </ul>
  );
}

/** What the worker said, below what was found; and which plan it is of. */
function Claimed({ run }: { run: RunRow }) {
  const claim = run.claim?.summary;
  const words = [
    run.planId !== null && `of plan ${run.planName ?? run.planId}`,
    run.attempt > 1 && `${run.attempt} attempts`,
    claim && `it said “${plain(claim)}”`,
  ].filter(Boolean);
  return words.length === 0 ? null : <small>{words.join(" · ")}</small>;
}

type HeadProps = { title: string; number: number | string; note?: string; children?: React.ReactNode };

function SectionHead({ title, number, note, children }: HeadProps) {
  return (
    <header className="section">
      <h2>{title}</h2>
      <span className="number">{number}</span>
      <span className="right note">
        {note} {children}
      </span>
    </header>
  );
}

function Columns() {
  return (
    <div className="columns line" aria-hidden="true">
      <span>state</span>
      <span>run</span>
      <span>why</span>
      <span className="num">last sign</span>
      <span className="num">cost</span>
      <span className="num">budget</span>
      <span />
    </div>
  );
}

function Working({ page, isFirst, attention }: { page: RunPage; isFirst: boolean; attention: Attention | undefined }) {
  const concerns = new Map(
    attention?.items.filter((each) => !needsSomebody(each)).map((each) => [each.runId, each.text]),
  );
  const runs = page.runs.filter((run) => run.pendingRequestCount === 0);
  if (runs.length === 0) return null;
  return (
    <section aria-label="working">
      <SectionHead title="Working" number={runs.length} {...cutNote(page)} />
      <Columns />
      <ul className="box lines">
        {runs.map((run, at) => (
          <ActiveLine key={run.runId} run={run} isFirst={isFirst && at === 0} concern={concerns.get(run.runId)} />
        ))}
      </ul>
    </section>
  );
}

function cutNote(page: RunPage): { note?: string } {
  const total = page.total ?? 0;
  return total > NOW_ROWS ? { note: `${NOW_ROWS} of ${total}${page.totalIsBound ? " or more" : ""}` } : {};
}

type ActiveProps = { run: RunRow; isFirst: boolean; concern?: string | undefined };

const ActiveLine = memo(function ActiveLine({ run, isFirst, concern }: ActiveProps) {
  const stop = () => void cancel(run);
  return (
    <RunLine run={run} isFirst={isFirst} keys={{ Backspace: stop }} {...(concern === undefined ? {} : { more: concern })}>
      <Act className="plain" onClick={stop}>Cancel</Act>
    </RunLine>
  );
});

function Waiting({ page }: { page: RunPage }) {
  if (page.runs.length === 0) return null;
  return (
    <section aria-label="waiting">
      <SectionHead title="Waiting" number={page.runs.length} note="by what they wait for" />
      <ul className="box causes">
        {causesOf(page.runs).map((cause) => (
          <CauseRow key={cause.key} cause={cause} />
        ))}
      </ul>
    </section>
  );
}

const FOLDED = 8;

/** All that wait for the same; what it is comes first. */
function CauseRow({ cause }: { cause: Cause }) {
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? cause.runs : cause.runs.slice(0, FOLDED);
  return (
    <li className="cause">
      <WordChip word={cause.state} />
      <div>
        <strong>
          <Said text={cause.words} />
        </strong>
        <ul>
          {shown.map((run) => (
            <li key={run.runId}>
              <RunLink run={run} />
              {run.wait?.place != null && <span className="note"> {run.wait.place === 1 ? "next" : `${run.wait.place}. in line`}</span>}
            </li>
          ))}
          {cause.runs.length > shown.length && (
            <li>
              <button type="button" className="plain" onClick={() => setOpen(true)}>{cause.runs.length - shown.length} more</button>
            </li>
          )}
        </ul>
      </div>
      <span className="age num">
        {cause.endsAt !== null ? (
          <>
            again at <Ahead at={cause.endsAt} />
          </>
        ) : cause.givesUpAt !== null ? (
          <>
            gives up at <Ahead at={cause.givesUpAt} />
          </>
        ) : (
          <>
            since <Ago at={cause.since} />
          </>
        )}
      </span>
    </li>
  );
}

function JustEnded({ page }: { page: RunPage }) {
  if (page.runs.length === 0) return null;
  return (
    <section aria-label="just ended">
      <SectionHead title="Just ended" number="">
        <Link href="/runs">all runs</Link>
      </SectionHead>
      <ul className="box lines">
        {page.runs.map((run) => (
          <EndedLine key={run.runId} run={run} />
        ))}
      </ul>
    </section>
  );
}

const EndedLine = memo(function EndedLine({ run }: { run: RunRow }) {
  return <RunLine run={run} isFirst={false} keys={{ r: () => retrySoon([run]) }} />;
});
