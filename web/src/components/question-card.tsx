// A question of a worker, with its options, an answer in own words, and what happens without one.
import { useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { answer, type Decision } from "../api/actions";
import { useRun } from "../api/queries";
import type { WorkerRequest } from "../api/types";
import { useDraft } from "../live/drafts";
import { plain } from "../text/marks";
import { Act, ForOperators, useWhyNot } from "./act";
import { WordChip } from "./chip";
import { BudgetBar, Dollars, Tokens } from "./cost";
import { Form } from "./form";
import { useRow } from "./rows";
import { runAt } from "./routes";
import { RunLink } from "./run-link";
import { Said } from "./said";
import { Ago, Clock } from "./when";

/** Of a question, before all else is pushed off the screen. */
const SHOWN_CHARS = 600;

type CardsProps = { requests: readonly WorkerRequest[]; level?: 2 | 3; takesFocus?: boolean };

/** Open questions; `takesFocus` = the first has the keyboard when they come. */
export function Questions({ requests, level = 3, takesFocus = false }: CardsProps) {
  const box = useRef<HTMLUListElement>(null);
  useEffect(() => {
    if (takesFocus) box.current?.querySelector<HTMLElement>("[data-row]")?.focus();
  }, [takesFocus]);
  if (requests.length === 0) return null;
  return (
    <ul ref={box} className="cards">
      {requests.map((each, at) => (
        <QuestionCard key={each.requestId} request={each} isFirst={at === 0} level={level} />
      ))}
    </ul>
  );
}

function QuestionCard({ request, isFirst, level }: { request: WorkerRequest; isFirst: boolean; level: 2 | 3 }) {
  const run = useRun(request.runId).data;
  const { options } = request;
  const Title = level === 2 ? "h2" : "h3";
  const [chosen, setChosen] = useState<number | null>(null);
  const [words, setWords, clearWords] = useDraft(request.requestId);
  const [isSending, setSending] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const name = useId();
  const said = words.trim();
  const response = said !== "" ? said : chosen === null ? null : (options[chosen] ?? null);

  const send = async (decision: Decision) => {
    if (isSending || whyNot !== null) return;
    if (decision === "answer" && response === null) return;
    setSending(true);
    const isTaken = await answer(request, request.requestId, decision === "deny" ? said : (response ?? ""), decision);
    setSending(false);
    if (isTaken) clearWords();
  };
  const choose = (at: number) => {
    setChosen(at);
    clearWords();
  };
  const row = useRow(request.requestId, isFirst, {
    ...Object.fromEntries(options.map((_, at) => [String(at + 1), () => choose(at)])),
    Enter: () => void send("answer"),
    a: () => document.getElementById(`${name}-words`)?.focus(),
    o: () => navigate(runAt(request.runId)),
  });
  const isBlocker = request.priority === "blocker";

  return (
    <li className="question" {...row} aria-label={`${isBlocker ? "blocked" : "asks"}: ${plain(request.label)}`}>
      <header>
        <WordChip word={isBlocker ? "blocked" : "asks"} />
        <RunLink run={request} className="label" />
        {run && (
          <span className="note">
            {run.agentId} · <Dollars usage={run.subtreeUsage ?? run.usage} /> · <Tokens run={run} /> tokens
            {run.budget?.percent != null && (
              <>
                {" · "}budget <BudgetBar budget={run.budget} />
              </>
            )}
          </span>
        )}
        <span className="right note">
          asked <Ago at={request.askedAt} />
          {request.deadlineAt !== null ? (
            <>
              {" · "}open until <Clock at={request.deadlineAt} />
            </>
          ) : (
            " · no deadline"
          )}
        </span>
      </header>
      <Title className="asked">
        <Said text={isWhole ? request.question : request.question.slice(0, SHOWN_CHARS)} />
      </Title>
      {request.question.length > SHOWN_CHARS && (
        <button type="button" className="plain" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "less" : `${(request.question.length - SHOWN_CHARS).toLocaleString("en")} more characters`}
        </button>
      )}
      {request.context !== null && (
        <p className="context">
          <Said text={request.context} />
        </p>
      )}
      {request.evidence !== null && (
        <p className="context">
          <span className="note">
            it ran into this <Ago at={request.evidence.failedAt} />:{" "}
          </span>
          <Said text={`${request.evidence.tool} ${request.evidence.asked}: ${request.evidence.error}`} mono />
        </p>
      )}
      {options.length > 0 && (
        <fieldset className="options">
          <legend className="visually-hidden">options</legend>
          {options.map((option, at) => (
            <label key={at} className={chosen === at && said === "" ? "option chosen" : "option"}>
              <input
                type="radio"
                name={name}
                checked={chosen === at && said === ""}
                onChange={() => choose(at)}
              />
              <Said text={option} />
              {at < 9 && <kbd>{at + 1}</kbd>}
            </label>
          ))}
        </fieldset>
      )}
      <ForOperators>
        <Form onSend={() => send("answer")}>
          <input
            id={`${name}-words`}
            aria-label={`answer ${plain(request.label)}`}
            placeholder={options.length > 0 ? "or in your own words" : "answer"}
            value={words}
            onChange={(event) => setWords(event.target.value)}
            autoComplete="off"
          />
          <Act type="submit" className="primary" disabled={response === null || isSending} hint="↵">{isSending ? "sending …" : "Answer"}</Act>
          <Act disabled={isSending} onClick={() => void send("deny")}>Deny</Act>
        </Form>
      </ForOperators>
      <p className="note">
        {whyNot ?? <Afterwards request={request} />}
      </p>
    </li>
  );
}

function Afterwards({ request }: { request: WorkerRequest }) {
  const { atDeadline, deadlineAt, defaultAnswer, waiting, waitingTotal } = request;
  return (
    <>
      {atDeadline === null && "It stays open until it is answered or the attempt ends. "}
      {atDeadline === "timeout" && (
        <>
          No default: at <Clock at={deadlineAt} /> the worker is told that nobody answered.{" "}
        </>
      )}
      {atDeadline === "deny" && (
        <>
          At <Clock at={deadlineAt} /> it is denied.{" "}
        </>
      )}
      {atDeadline === "default" && (
        <>
          At <Clock at={deadlineAt} /> it goes on with “<Said text={defaultAnswer ?? ""} />
          ”.{" "}
        </>
      )}
      {waitingTotal === 0 ? "No other run waits for this one." : `${waiting.map((each) => plain(each.label)).join(", ")}${waitingTotal > waiting.length ? ` and ${waitingTotal - waiting.length} more` : ""} ${waitingTotal === 1 ? "waits" : "wait"} for it.`}
    </>
  );
}
