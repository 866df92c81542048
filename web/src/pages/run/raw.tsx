// The journal as it is stored, and what the parameters came to.
import { useState } from "react";
import { useTimeline } from "../../api/queries";
import type { RunDetail } from "../../api/types";
import { Panel, Scrolls } from "../../components/panel";
import { Said } from "../../components/said";
import { Answered, CopyButton } from "../../components/states";
import { clockSeconds, ms } from "../../text/times";

export function RawTab({ run }: { run: RunDetail }) {
  const timeline = useTimeline(run.runId);
  return (
    <>
      <Panel title="Effective parameters" right={<CopyButton text={JSON.stringify(run.resolved, null, 2)} />}>
        <Json value={run.resolved} />
      </Panel>
      <Panel title="As given" right={<CopyButton text={JSON.stringify(run.originalSpawnParams, null, 2)} />}>
        <Json value={run.originalSpawnParams} />
      </Panel>
      <Panel title="Journal" note={timeline.data && `${timeline.data.events.length} events${timeline.data.nextSeq === null ? "" : ", more behind them"}`}>
        <Answered query={timeline}>
          {(found) => (
            <ul className="list journal">
              {found.events.map((each) => (
                <li key={each.seq}>
                  <details>
                    <summary>
                      <code>{each.seq}</code> <code>{clockSeconds(ms(each.occurredAt) ?? 0)}</code> {each.type}{" "}
                      <span className="note">
                        {each.phase}
                        {each.stale && ", late: changed nothing"}
                      </span>
                    </summary>
                    <Json value={each.data} />
                  </details>
                </li>
              ))}
            </ul>
          )}
        </Answered>
      </Panel>
    </>
  );
}

const SHOWN_CHARS = 20_000;

function Json({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2) ?? "";
  const [isWhole, setWhole] = useState(false);
  return (
    <Scrolls name="as JSON">
      <Said text={isWhole ? text : text.slice(0, SHOWN_CHARS)} mono />
      {text.length > SHOWN_CHARS && !isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          {SHOWN_CHARS.toLocaleString("en")} of {text.length.toLocaleString("en")} characters; show all
        </button>
      )}
    </Scrolls>
  );
}
