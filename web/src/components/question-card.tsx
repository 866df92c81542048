// A question of a worker, with its options, an answer in own words, and what happens without one.
import { useId, useState } from "react";
import { Link, useLocation } from "wouter";
import { answer, type Decision } from "../api/actions";
import { useRequest, useRun } from "../api/queries";
import type { AttentionItem } from "../api/types";
import { useDraft } from "../live/drafts";
import { plain } from "../text/marks";
import { useWhyNot } from "./actions-allowed";
import { WordChip } from "./chip";
import { BudgetBar, Dollars, Tokens } from "./cost";
import { useRow } from "./rows";
import { runAt } from "./routes";
import { Said } from "./said";
import { Ago, Clock } from "./when";

export function QuestionCard({ item, isFirst }: { item: AttentionItem; isFirst: boolean }) {
  const request = useRequest(item.requestId).data;
  const run = useRun(item.runId).data;
  const options = request?.options ?? item.options;
  const [chosen, setChosen] = useState<number | null>(null);
  const [words, setWords, clearWords] = useDraft(item.requestId ?? item.runId);
  const [isSending, setSending] = useState(false);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const name = useId();
  const said = words.trim();
  const response = said !== "" ? said : chosen === null ? null : (options[chosen] ?? null);

  const send = async (decision: Decision) => {
    if (item.requestId === null || isSending || whyNot !== null) return;
    if (decision === "answer" && response === null) return;
    setSending(true);
    const isTaken = await answer(item, item.requestId, decision === "deny" ? said : (response ?? ""), decision);
    setSending(false);
    if (isTaken) clearWords();
  };
  const choose = (at: number) => {
    setChosen(at);
    clearWords();
  };
  const row = useRow(item.requestId ?? item.runId, isFirst, {
    ...Object.fromEntries(options.map((_, at) => [String(at + 1), () => choose(at)])),
    Enter: () => void send("answer"),
    a: () => document.getElementById(`${name}-words`)?.focus(),
    o: () => navigate(runAt(item.runId)),
  });
  const isBlocker = item.kind === "blocker";

  return (
    <li className="question" {...row} aria-label={`${isBlocker ? "blocked" : "asks"}: ${plain(item.label)}`}>
      <header>
        <WordChip word={isBlocker ? "blocked" : "asks"} />
        <Link href={runAt(item.runId)} className="label">
          <Said text={item.label} />
        </Link>
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
          asked <Ago at={item.sinceAt} />
          {request?.deadlineAt ? (
            <>
              {" · "}open until <Clock at={request.deadlineAt} />
            </>
          ) : (
            request && " · no deadline"
          )}
        </span>
      </header>
      <h3>
        <Said text={request?.question ?? item.text} />
      </h3>
      {request?.context && (
        <p className="context">
          <Said text={request.context} />
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
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send("answer");
        }}
      >
        <input
          id={`${name}-words`}
          aria-label={`answer ${plain(item.label)}`}
          placeholder={options.length > 0 ? "or in your own words" : "answer"}
          value={words}
          onChange={(event) => setWords(event.target.value)}
          autoComplete="off"
        />
        <button type="submit" className="primary" disabled={response === null || isSending || whyNot !== null}>
          {isSending ? "sending …" : "Answer"} <kbd>↵</kbd>
        </button>
        <button type="button" disabled={isSending || whyNot !== null} onClick={() => void send("deny")}>
          Deny
        </button>
      </form>
      <p className="note">
        {whyNot ?? <Afterwards request={request} />}
      </p>
    </li>
  );
}

function Afterwards({ request }: { request: { defaultAnswer: string | null; deadlineAt: string | null } | undefined }) {
  if (request === undefined) return null;
  if (request.deadlineAt === null) return <>It stays open until it is answered or the attempt ends.</>;
  if (request.defaultAnswer === null) {
    return (
      <>
        No default: at <Clock at={request.deadlineAt} /> the worker is told that nobody answered.
      </>
    );
  }
  return (
    <>
      At <Clock at={request.deadlineAt} /> it goes on with “<Said text={request.defaultAnswer} />”.
    </>
  );
}
