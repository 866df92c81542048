// The head of a run's page: state, the sentence of why, the numbers, and what can be done.
import { useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { cancel, interrupt, keep, markRead, pause, redeliver, resume, retry, retrySoon, send, steer } from "../../api/actions";
import { useRunStatus } from "../../api/queries";
import type { RunDetail } from "../../api/types";
import { Act, ForOperators, useWhyNot } from "../../components/act";
import { StateChip } from "../../components/chip";
import { Cost, Tokens } from "../../components/cost";
import { Form } from "../../components/form";
import { compareAt, runAt } from "../../components/routes";
import { Said } from "../../components/said";
import { Ago, Ahead, Took } from "../../components/when";
import { useDraft } from "../../live/drafts";
import { useKeys } from "../../live/keys";
import { counted } from "../../text/amounts";
import { person, plain } from "../../text/marks";
import { can, isEnded, retriesOf } from "../../text/states";

export function RunTop({ run }: { run: RunDetail }) {
  const status = useRunStatus(run.runId).data;
  const model = run.model ?? null;
  return (
    <header className="runtop">
      <div className="first">
        <StateChip run={run} />
        <h1 className="big">
          <Said text={run.label} />
        </h1>
        <span className="note">
          {run.agentId}
          {model !== null && ` · ${model}`}
        </span>
        <Actions run={run} />
      </div>
      <p className="sentence">
        <Said text={run.blockedReason ?? run.why ?? ""} />
      </p>
      <ul className="numbers">
        {run.attempt > 0 && (
          <li>
            attempt {run.attempt}
            {retriesOf(run) !== "none" && `, retries: ${retriesOf(run)}`}
            {run.attempts.length > 1 && (
              <>
                , <Link href={compareAt(run.attempts.at(-2)?.attemptId ?? "", run.attempts.at(-1)?.attemptId ?? "")}>compare the last two</Link>
              </>
            )}
            {run.attempts.at(-1)?.pid != null && !isEnded(run) && ` (pid ${run.attempts.at(-1)?.pid})`}
          </li>
        )}
        {run.startedAt !== null && (
          <li>
            took{" "}
            <b>
              <Took from={run.startedAt} to={run.endedAt} />
            </b>
            {run.endedAt !== null && (
              <>
                , ended <Ago at={run.endedAt} />
              </>
            )}
          </li>
        )}
        {status !== undefined && status.childrenTotal > 0 && (
          <li>
            spawned <b>{counted(status.childrenTotal, "run")}</b>
            {status.childrenActive > 0 && `, ${status.childrenActive} active`}
          </li>
        )}
        <li>
          {run.subtreeUsage === null ? "" : "subtree "}
          <b>
            <Tokens run={run} />
          </b>{" "}
          tokens,{" "}
          <b>
            <Cost run={run} />
          </b>
          {(run.subtreeUsage?.costUnknownRuns ?? 0) > 0 && ` (${counted(run.subtreeUsage?.costUnknownRuns ?? 0, "run")} not reported)`}
        </li>
        {run.budget !== null && (
          <li>
            budget <b>{run.budget.percent === null ? "?" : `${run.budget.percent} %`}</b>: {run.budget.text}
          </li>
        )}
        {run.deadlineAt !== null && !isEnded(run) && (
          <li>
            stopped at <Ahead at={run.deadlineAt} />
          </li>
        )}
        {status?.lastActivityAt && !isEnded(run) && (
          <li>
            last sign{" "}
            <b>
              <Ago at={status.lastActivityAt} />
            </b>
            {status.lastActivity && (
              <>
                : <Said text={status.lastActivity} />
              </>
            )}
          </li>
        )}
        {isEnded(run) && (
          <li>
            {run.announcementConsumedAt === null ? (
              <>
                its result waits for{" "}
                <b>
                  <Said text={person(run.requester)} />
                </b>
              </>
            ) : (
              <>
                its result was taken <Ago at={run.announcementConsumedAt} />
              </>
            )}
            {run.dismissedAt !== null && (
              <>
                , marked as read <Ago at={run.dismissedAt} />
              </>
            )}
          </li>
        )}
      </ul>
    </header>
  );
}

type Box = "steer" | "continue" | null;

function Actions({ run }: { run: RunDetail }) {
  const [box, setBox] = useState<Box>(null);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const ended = isEnded(run);
  // Whoever went on to another page meanwhile stays there.
  const follow = (id: string) => location.pathname.includes(runAt(run.runId)) && navigate(runAt(id));
  const again = async () => (await retry([run])).forEach(follow);
  const togglePause = () => void (run.paused ? resume(run) : pause(run));
  const steerNow = () => setBox("steer");
  const goOn = () => setBox("continue");
  const answerNow = () => document.querySelector<HTMLElement>(".question")?.focus();
  useKeys({
    ...(run.pendingRequestCount > 0 ? { a: answerNow } : {}),
    ...(ended
      ? { r: () => retrySoon([run], follow), ...(can(run, "resume") ? { n: goOn } : {}), x: () => void markRead([run]) }
      : {
          ...(can(run, "steer") ? { s: steerNow } : {}),
          ...(can(run, "interrupt") ? { i: () => void interrupt(run) } : {}),
          p: togglePause,
          Backspace: () => void cancel(run),
        }),
  });
  return (
    <>
      <div className="actions" role="group" aria-label="actions">
        {run.pendingRequestCount > 0 && <Act className="primary" onClick={() => (navigate(runAt(run.runId)), setTimeout(answerNow))} hint="a">Answer</Act>}
        {ended ? (
          <>
            <Act className={run.outcome?.status === "ok" ? "" : "primary"} onClick={() => void again()} hint="r">Retry</Act>
            <Act onClick={() => navigate(`/new?from=${encodeURIComponent(run.runId)}`)}>Retry with changes</Act>
            {can(run, "resume") && <Act onClick={goOn} hint="n">Continue</Act>}
            {run.readAt === null && <Act onClick={() => void markRead([run])} hint="x">Mark as read</Act>}
            {run.announcementConsumedAt !== null && <Act onClick={() => void redeliver(run)}>Deliver again</Act>}
          </>
        ) : (
          <>
            {can(run, "steer") && <Act onClick={steerNow} hint="s">Steer</Act>}
            {can(run, "interrupt") && <Act onClick={() => void interrupt(run)} hint="i">Interrupt</Act>}
            <Act onClick={togglePause} hint="p">{run.paused ? "Resume" : "Pause"}</Act>
            {run.cancelAt === null ? (
              <Act className="danger" onClick={() => void cancel(run)} hint="⌫">Cancel</Act>
            ) : (
              <Act className="primary" onClick={() => void keep(run)}>Keep it</Act>
            )}
          </>
        )}
      </div>
      {whyNot !== null && <span className="note">{whyNot}</span>}
      <ForOperators>{box !== null && <Say run={run} kind={box} onClose={() => setBox(null)} />}</ForOperators>
    </>
  );
}

/** A line to the worker: into its live turn, or as the next task of its session. */
function Say({ run, kind, onClose }: { run: RunDetail; kind: "steer" | "continue"; onClose: () => void }) {
  const [words, setWords, clear] = useDraft(`${kind}/${run.runId}`);
  const what = kind === "steer" ? "a message for its worker" : "what to do next in the same session";
  const isSending = useRef(false);
  const submit = async () => {
    if (words.trim() === "" || isSending.current) return;
    isSending.current = true;
    const isTaken = await (kind === "steer" ? steer(run, words) : send(run, words));
    isSending.current = false;
    if (!isTaken) return;
    clear();
    onClose();
  };
  return (
    <Form
      className="say"
      onSend={submit}
      onKeyDown={(event) => {
        if (event.key === "Escape" && !event.nativeEvent.isComposing) onClose();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit();
      }}
    >
      <textarea autoFocus rows={2} aria-label={`${what}: ${plain(run.label)}`} placeholder={what} value={words} onChange={(event) => setWords(event.target.value)} />
      <button type="submit" className="primary">
        Send <kbd>Ctrl ↵</kbd>
      </button>
      <button type="button" className="plain" onClick={onClose}>Close</button>
    </Form>
  );
}
