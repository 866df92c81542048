// A session's runs along time, one lane or more for each agent.
import { Link } from "wouter";
import { useRuns } from "../api/queries";
import type { RunRow } from "../api/types";
import { Bars, Legend, type Lane } from "../components/bars";
import { Heading } from "../components/heading";
import { Panel } from "../components/panel";
import { RowScope } from "../components/rows";
import { RunLine } from "../components/run-line";
import { Answered, Empty } from "../components/states";
import { useWords } from "../live/clock";
import { counted } from "../text/amounts";
import { rowsOf } from "../text/lanes";
import { plain } from "../text/marks";
import type { Kind, Segment } from "../text/segments";
import { ms } from "../text/times";

const DRAWN = 200;
/** Of one agent; what overlaps more often shares the last one. */
const ROWS = 8;

export default function SessionPage({ session }: { session: string }) {
  const query = useRuns({ requester: session, limit: DRAWN });
  return (
    <RowScope>
      <Heading title={plain(session)} note={query.data && counted(query.data.total ?? 0, "run")} />
      <Answered query={query}>
        {(found) =>
          found.runs.length === 0 ? (
            <Empty title="This session asked for nothing">
              <Link href="/sessions">all sessions</Link>
            </Empty>
          ) : (
            <>
              <Lanes runs={found.runs} />
              {(found.total ?? 0) > DRAWN && <p className="note">the newest {DRAWN} runs</p>}
              <ul className="box lines">
                {found.runs.map((run, at) => (
                  <RunLine key={run.runId} run={run} isFirst={at === 0} />
                ))}
              </ul>
            </>
          )
        }
      </Answered>
    </RowScope>
  );
}

function Lanes({ runs }: { runs: readonly RunRow[] }) {
  const now = useWords((at) => Math.floor(at / 1_000) * 1_000);
  const from = Math.min(...runs.map((run) => ms(run.createdAt) ?? now));
  const to = runs.every((run) => run.endedAt !== null) ? Math.max(...runs.map((run) => ms(run.endedAt) ?? from)) : Math.max(now, from + 1);
  const agents = [...new Set(runs.map((run) => run.agentId))].sort();
  const lanes: Lane[] = agents.flatMap((agent) => {
    const own = runs.filter((run) => run.agentId === agent);
    // The wait before the work belongs to the run; the row is taken from the spawn on.
    const rows = rowsOf(own.map((run) => ({ from: ms(run.createdAt) ?? from, to: ms(run.endedAt) ?? now, run })));
    const rest = rows.slice(ROWS).flat();
    const shown = rest.length === 0 ? rows : [...rows.slice(0, ROWS), rest];
    return shown.map((row, at) => ({
      key: `${agent}/${at}`,
      label: at === 0 ? agent : "",
      segments: row.flatMap(({ run }) => pieces(run, now)),
      note: at === 0 ? counted(own.length, "run") : at === ROWS ? `${rest.length} more` : "",
    }));
  });
  return (
    <Panel title="Where the time went" note="a lane for each agent; more where its runs overlap">
      <Bars lanes={lanes} from={from} to={Math.max(to, from + 1)} label="runs of this session along time" />
      <Legend kinds={["work", "wait", "person", "ok", "bad"]} />
    </Panel>
  );
}

function pieces(run: RunRow, now: number): Segment[] {
  const spawned = ms(run.createdAt) ?? now;
  const started = ms(run.startedAt);
  const ended = ms(run.endedAt) ?? now;
  const status = run.outcome?.status;
  const kind: Kind = status === undefined ? (run.pendingRequestCount > 0 ? "person" : "work") : status === "ok" || status === "partial" ? "ok" : status === "cancelled" ? "work" : "bad";
  if (started === null) return [{ from: spawned, to: ended, kind: status === undefined ? "wait" : kind }];
  return [
    { from: spawned, to: started, kind: "wait" },
    { from: started, to: ended, kind },
  ];
}
