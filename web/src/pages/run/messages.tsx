// What the run and its requester said to each other: questions with their answers, tries of delivery.
import type { RunDetail, WorkerRequest } from "../../api/types";
import { WordChip } from "../../components/chip";
import { Panel } from "../../components/panel";
import { Said } from "../../components/said";
import { Empty } from "../../components/states";
import { Ago, Ahead } from "../../components/when";

export function MessagesTab({ run }: { run: RunDetail }) {
  return (
    <>
      <Panel title="Questions" note={run.requests.length}>
        {run.requests.length === 0 ? (
          <Empty title="It asked nothing" />
        ) : (
          <ul className="list messages">
            {run.requests.map((each) => (
              <Question key={each.requestId} request={each} />
            ))}
          </ul>
        )}
      </Panel>
      {run.report !== null && (
        <Panel title="Its report" note={[run.report.status, run.report.confidence && `${run.report.confidence} confidence`].filter(Boolean).join(", ")}>
          <div className="body">
            <p>
              <Said text={run.report.summary} />
            </p>
            <Words title="in the way" texts={run.report.blockers} />
            <Words title="to look at" texts={run.report.warnings} />
          </div>
        </Panel>
      )}
      <Panel title="Delivery" note={run.delivery === null ? undefined : `to ${run.delivery.target}`}>
        {run.delivery === null || run.delivery.tries.length === 0 ? (
          <Empty title={run.outcome === null ? "Its requester is told when it ends" : "It was put into the inbox of its requester"} />
        ) : (
          <ul className="list messages">
            {run.delivery.tries.map((each, at) => (
              <li key={at}>
                <span>
                  {String(each.outcome["kind"] ?? "tried")} <span className="note">{each.routeMode}</span>
                </span>
                <Said text={JSON.stringify(each.outcome)} mono />
                <span className="note">
                  <Ago at={each.triedAt} />
                </span>
              </li>
            ))}
            {run.delivery.dueAt !== null && (
              <li>
                tried again at <Ahead at={run.delivery.dueAt} />
              </li>
            )}
          </ul>
        )}
      </Panel>
    </>
  );
}

function Words({ title, texts }: { title: string; texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {texts.map((each) => (
          <li key={each}>
            <Said text={each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Question({ request }: { request: WorkerRequest }) {
  const word = request.status === "pending" ? (request.priority === "blocker" ? "blocked" : "asks") : "ok";
  return (
    <li>
      <WordChip word={word} text={request.status} />
      <div>
        <strong>
          <Said text={request.question} />
        </strong>
        {request.context && (
          <p className="note">
            <Said text={request.context} />
          </p>
        )}
        {request.status !== "pending" && (
          <p>
            {request.decision ?? "no decision"}
            {request.answer !== null && (
              <>
                : “<Said text={request.answer} />”
              </>
            )}
            {request.by !== null && <span className="note"> by {request.by}</span>}
          </p>
        )}
      </div>
      <span className="note">
        <Ago at={request.answeredAt ?? request.askedAt} />
      </span>
    </li>
  );
}
