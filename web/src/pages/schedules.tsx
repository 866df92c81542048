// Work that starts at its times: when next, what the last times came to; pause, resume, run now.
import { Link, useLocation } from "wouter";
import { reason, soon } from "../api/actions";
import { post } from "../api/client";
import { useRuns, useSchedules } from "../api/queries";
import type { RunRow, ScheduledTimeRow, ScheduleRow, ScheduleStart } from "../api/types";
import { Act } from "../components/act";
import { StateChip, WordChip } from "../components/chip";
import { Heading } from "../components/heading";
import { RowScope, useRow } from "../components/rows";
import { runAt, runsAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Command, Empty } from "../components/states";
import { Ago, Ahead } from "../components/when";
import { queries } from "../live/live";
import { toldDone, toldFailed } from "../live/toasts";
import { counted } from "../text/amounts";
import { plain } from "../text/marks";
import { countedStates, inWords } from "../text/plan-rows";

const TIMES_SHOWN = 5;
const ROWS_MAX = 1_000;

export default function SchedulesPage() {
  const schedules = useSchedules();
  return (
    <RowScope>
      <Heading title="Schedules" note={schedules.data && counted(schedules.data.schedules.length, "schedule")} />
      <Answered query={schedules}>
        {(found) =>
          found.schedules.length === 0 ? (
            <div className="box">
              <Empty title="No schedules yet">
                <p>A task or a plan that starts at its times:</p>
                <Command text="subagents schedule add nightly '0 3 * * *' 'make test'" />
                <Command text="subagents schedule add weekly @weekly --plan audit.yaml" />
              </Empty>
            </div>
          ) : (
            <ul className="box lines">
              {found.schedules.map((each, at) => (
                <ScheduleLine key={each.scheduleId} schedule={each} isFirst={at === 0} />
              ))}
            </ul>
          )
        }
      </Answered>
    </RowScope>
  );
}

async function change(name: string, call: "pause" | "resume" | "run"): Promise<ScheduleStart | null> {
  try {
    const found = await post<ScheduleStart>(`/v1/schedules/${encodeURIComponent(name)}/${call}`);
    void queries.invalidateQueries({ queryKey: ["list", "/v1/schedules"] });
    return found;
  } catch (error) {
    toldFailed(`${plain(name)}: it was not done`, reason(error));
    return null;
  }
}

async function runNow(name: string): Promise<void> {
  const found = await change(name, "run");
  if (found !== null) toldDone(`Started ${counted(found.runIds.length, "run")} of ${plain(name)}`);
}

async function pause(name: string): Promise<void> {
  if ((await change(name, "pause")) !== null) toldDone(`${plain(name)} is paused`, () => void change(name, "resume"));
}

function ScheduleLine({ schedule, isFirst }: { schedule: ScheduleRow; isFirst: boolean }) {
  const [, navigate] = useLocation();
  const { name, times, steps, running } = schedule;
  const isPaused = schedule.pausedAt !== null;
  const runs = useRuns({ tag: schedule.tag, archived: true, limit: Math.min((TIMES_SHOWN + 1) * (steps ?? 1), ROWS_MAX) });
  const rows = new Map(runs.data?.runs.map((run) => [run.runId, run]));
  const itsRuns = runsAt(`tag:${schedule.tag}`);
  const turn = () => void (isPaused ? change(name, "resume") : pause(name));
  const open = () => navigate(itsRuns);
  const row = useRow(schedule.scheduleId, isFirst, { Enter: open, o: open, p: turn, r: () => soon(`The work of ${plain(name)}`, () => runNow(name)) });
  return (
    <li className="line schedule" {...row}>
      {isPaused ? <WordChip word="paused" text="paused" /> : running.length > 0 ? <WordChip word="working" text={`${running.length} at work`} /> : <WordChip word="waiting" />}
      <span className="name">
        <Link href={itsRuns} className="label" title={schedule.scheduleId} tabIndex={-1}>
          <Said text={name} />
        </Link>
        <span className="note">{steps === null ? schedule.agentId : counted(steps, "step")}</span>
      </span>
      <span className="why">
        <span title={`${schedule.when} (${schedule.zone})`}>{schedule.words}</span> · <Said text={schedule.task} />
        <span className="outcomes">
          {times.length === 0 ? "no time yet" : times.slice(0, TIMES_SHOWN).map((each, at) => <Came key={at} time={each} rows={rows} />)}
        </span>
      </span>
      <span className="age num">{isPaused ? <>since <Ago at={schedule.pausedAt} /></> : schedule.nextAt === null ? "never" : <Ahead at={schedule.nextAt} />}</span>
      <span className="acts">
        <Act className="plain" onClick={() => void runNow(name)}>Run now</Act>
        <Act className="plain" onClick={turn}>
          {isPaused ? "Resume" : "Pause"}
        </Act>
      </span>
    </li>
  );
}

/** What a time came to: the state of its run, or why there is none. */
function Came({ time, rows }: { time: ScheduledTimeRow; rows: ReadonlyMap<string, RunRow> }) {
  const runs = time.runIds.map((id) => rows.get(id)).filter((run) => run !== undefined);
  const [only] = runs;
  return (
    <span className="came">
      {time.runIds.length === 1 && only !== undefined ? (
        <Link href={runAt(only.runId)} tabIndex={-1}>
          <StateChip run={only} />
        </Link>
      ) : (
        <span title={time.text}>{runs.length > 0 ? inWords(countedStates(counts(runs))) : time.decision}</span>
      )}{" "}
      <Ago at={time.decidedAt} />
      {time.byHand && " by hand"}
    </span>
  );
}

function counts(runs: readonly RunRow[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { state } of runs) found[state] = (found[state] ?? 0) + 1;
  return found;
}
