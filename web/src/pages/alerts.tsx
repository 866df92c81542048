// What is wrong now with runs at work, and what the detectors said before.
import { useState } from "react";
import { Link } from "wouter";
import { useAlerts, useAttention } from "../api/queries";
import type { StreamEvent } from "../api/types";
import { WordChip } from "../components/chip";
import { Heading } from "../components/heading";
import { Panel } from "../components/panel";
import { runAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { needsSomebody } from "../components/title";
import { Ago } from "../components/when";
import { alertWords, BAD } from "../text/alerts";

const SHOWN = 300;

export default function AlertsPage() {
  const attention = useAttention();
  const alerts = useAlerts(attention.data?.seq);
  const [kind, setKind] = useState("");
  const concerns = attention.data?.items.filter((each) => !needsSomebody(each)) ?? [];
  const kinds = [...new Set(alerts.data?.map((each) => String(each.event)) ?? [])].sort();
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
                      <Link href={runAt(each.runId)} className="label">
                        <Said text={each.label} />
                      </Link>
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
        title="Before"
        note={alerts.data && `the newest ${Math.min(alerts.data.length, SHOWN)}`}
        right={
          <select aria-label="kind of alert" value={kind} onChange={(event) => setKind(event.target.value)}>
            <option value="">all kinds</option>
            {kinds.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        }
      >
        <Answered query={alerts}>
          {(found) => {
            const shown = found.filter((each) => kind === "" || each.event === kind).slice(0, SHOWN);
            return shown.length === 0 ? (
              <Empty title="No alerts" />
            ) : (
              <ul className="lines">
                {shown.map((each, at) => (
                  <AlertLine key={`${each.seq}/${at}`} event={each} />
                ))}
              </ul>
            );
          }}
        </Answered>
      </Panel>
    </>
  );
}

function AlertLine({ event }: { event: StreamEvent }) {
  const name = String(event.event);
  const word = name === "completion" ? String(event.status) : BAD.has(name) || event.passed === false ? "lost" : "queued";
  return (
    <li className="line need">
      <WordChip word={word} text={name.replaceAll("_", " ")} />
      <span className="name">
        <Link href={runAt(event.runId)} className="label">
          <Said text={event.label} />
        </Link>
      </span>
      <span className="why">
        <Said text={alertWords(event)} />
      </span>
      <span className="age num">
        <Ago at={event.occurredAt} />
      </span>
    </li>
  );
}
