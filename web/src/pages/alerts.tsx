// What is wrong now with runs at work, and which alerts were raised before.
import { Link } from "wouter";
import { useAlerts, useAttention } from "../api/queries";
import type { RaisedAlert } from "../api/types";
import { WordChip } from "../components/chip";
import { Choice } from "../components/form";
import { Heading } from "../components/heading";
import { Panel } from "../components/panel";
import { RunLink } from "../components/run-link";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { needsSomebody } from "../components/title";
import { Ago } from "../components/when";
import { useAddress } from "../live/address";
import { alertWords, BAD } from "../text/alerts";

const KINDS: readonly RaisedAlert["kind"][] = [
  "stuck", "failure_loop", "api_error", "budget_alert", "same_path",
  "context_pressure", "build_result", "git_commit", "task_milestone", "subagent_spawn",
];

export default function AlertsPage() {
  const attention = useAttention();
  const [inAddress, put] = useAddress();
  const kind = inAddress("kind");
  const history = useAlerts(kind);
  const raised = history.data?.pages.flatMap((page) => page.alerts) ?? [];
  const concerns = attention.data?.items.filter((each) => !needsSomebody(each)) ?? [];
  return (
    <>
      <Heading title="Alerts" note={`${concerns.length} now`} />
      <Panel title="Now" note="something is wrong with a run at work">
        <Answered query={attention}>
          {() =>
            concerns.length === 0 ? (
              <Empty title="Nothing is wrong with what works" />
            ) : (
              <ul className="lines">
                {concerns.map((each) => (
                  <li key={`${each.kind}/${each.runId}`} className="line need">
                    <WordChip word="lost" text={each.kind.replaceAll("_", " ")} />
                    <span className="name">
                      <RunLink run={each} className="label" />
                    </span>
                    <span className="why">
                      <Said text={each.text} />
                    </span>
                    <span className="age num">
                      <Ago at={each.sinceAt} />
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
        </Answered>
      </Panel>
      <Panel
        title="Raised"
        note={history.data && `the newest ${raised.length}${history.hasNextPage ? ", and more before" : ""}`}
        right={
          <Choice name="kind of alert" value={kind} options={[["", "all kinds"], ...KINDS.map((each) => [each, each.replaceAll("_", " ")] as const)]} onChoose={(next) => put("kind", next)} />
        }
      >
        <Answered query={history}>
          {() =>
            raised.length === 0 ? (
              <Empty title="No alerts">
                <p>A run that is stuck, fails in a loop or nears its budget is told of here. <Link href="/runs">All runs</Link></p>
              </Empty>
            ) : (
              <ul className="lines">
                {raised.map((each) => (
                  <AlertLine key={each.seq} alert={each} />
                ))}
              </ul>
            )
          }
        </Answered>
        {history.hasNextPage && (
          <button type="button" className="plain" disabled={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
            {history.isFetchingNextPage ? "asking …" : "Show older ones"}
          </button>
        )}
      </Panel>
    </>
  );
}

/** What was raised, and below it what became of it: sent, held back, read. */
function AlertLine({ alert }: { alert: RaisedAlert }) {
  const word = BAD.has(alert.kind) || alert.event.passed === false ? "lost" : "queued";
  return (
    <li className="line need">
      <WordChip word={word} text={alert.kind.replaceAll("_", " ")} />
      <span className="name">
        <RunLink run={alert} className="label" />
        <span className="note">{alert.agentId}</span>
      </span>
      <span className="why">
        <Said text={alertWords(alert.event)} />
        <small>
          <Said text={alert.why} />
          {alert.readAt !== null && (
            <>
              {" · read "}
              <Ago at={alert.readAt} />
            </>
          )}
          {alert.stands && " · still so"}
        </small>
      </span>
      <span className="age num">
        <Ago at={alert.occurredAt} />
      </span>
    </li>
  );
}
