// What was asked, what was promised, what was found, what came of it.
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { address, runPath } from "../../api/client";
import { useArtifacts, useResultText, useRun } from "../../api/queries";
import type { RunDetail } from "../../api/types";
import { StateChip } from "../../components/chip";
import { Facts, Panel, Scrolls } from "../../components/panel";
import { Questions } from "../../components/question-card";
import { RunLink } from "../../components/run-link";
import { compareAt, runAt } from "../../components/routes";
import { RowScope } from "../../components/rows";
import { Said } from "../../components/said";
import { Command, CopyButton } from "../../components/states";
import { Ago, Ahead } from "../../components/when";
import { bytes } from "../../text/amounts";
import { person, plain } from "../../text/marks";
import { isEnded, retriesOf } from "../../text/states";
import { Contract } from "./contract";

export function OverviewTab({ run }: { run: RunDetail }) {
  const asked = run.requests.filter((each) => each.status === "pending");
  const ended = isEnded(run);
  return (
    <div className="two-columns">
      <div>
        <RowScope>
          <Questions requests={asked} level={2} />
        </RowScope>
        <Contract run={run} />
        {ended && <Result run={run} />}
        <Panel
          title="Task"
          note={
            <>
              from <Said text={person(run.requester)} />, <Ago at={run.createdAt} />
            </>
          }
        >
          <Scrolls name="task">
            <Said text={String(run.spec["task"] ?? run.task ?? "")} mono />
          </Scrolls>
        </Panel>
        {!ended && (
          <Panel title="Result">
            <div className="body">
              None yet. It comes when the run has ended; until then: <Link href={runAt(run.runId, "transcript")}>the transcript</Link>.
            </div>
          </Panel>
        )}
      </div>
      <aside aria-label="more about this run">
        <Progress run={run} />
        <Left run={run} />
        <Runs title="Below it" ids={run.children.map((each) => each.runId)} right={<Link href={runAt(run.runId, "tree")}>as a tree</Link>} />
        <Runs title="Waits for" ids={run.dependencies.map((each) => each.runId)} note={run.waitDeadlineAt && <Ahead at={run.waitDeadlineAt} />} />
        <Parameters run={run} />
        <Panel title="From a shell">
          <div className="body">
            <Command text={`subagents why ${run.runId}`} />
            <Command text={ended ? `subagents retry ${run.runId}` : `subagents continue ${run.runId}`} />
          </div>
        </Panel>
      </aside>
    </div>
  );
}

function Result({ run }: { run: RunDetail }) {
  const shown = run.result ?? "";
  const isCut = run.resultBytes > new TextEncoder().encode(shown).length;
  const [wantsAll, setWantsAll] = useState(false);
  const whole = useResultText(run.runId, run.resultBytes, wantsAll);
  const text = whole.data ?? shown;
  const note = run.result === null ? undefined : `${bytes(run.resultBytes)}${isCut && whole.data === undefined ? ", cut here" : ", whole"}`;
  return (
    <Panel title="Result" note={note} right={run.result !== null && <CopyButton text={text} />}>
      <Scrolls name="result">
        {run.result === null ? (
          <p>
            It gave none.
            {run.lastWords !== null && (
              <>
                {" "}
                Its last words: <Said text={run.lastWords} mono />
              </>
            )}
          </p>
        ) : (
          <Said text={text} mono />
        )}
        {isCut && whole.data === undefined && (
          <p>
            <button type="button" onClick={() => setWantsAll(true)}>
              {whole.isFetching ? "loading …" : `Show all ${bytes(run.resultBytes)}`}
            </button>
          </p>
        )}
      </Scrolls>
      {run.artifacts.length > 0 && <Files run={run} />}
    </Panel>
  );
}

/** The files it left; one is a download and never shown by the browser by itself. */
function Files({ run }: { run: RunDetail }) {
  const found = useArtifacts(run.runId).data;
  const files = found?.artifacts ?? run.artifacts.map((each) => ({ ...each, bytes: null, problem: null }));
  return (
    <ul className="list files">
      {files.map((each) => (
        <li key={each.path}>
          <span>
            <Said text={each.path} mono /> {each.description && <Said text={each.description} />}
          </span>
          <span className="note">
            {each.problem ?? (each.verified ? "verified" : "reported")}
            {each.bytes !== null && (
              <>
                {", "}
                <a href={address(runPath(run.runId, "artifacts/content"), { path: each.path })} download>
                  {bytes(each.bytes)}
                </a>
              </>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Progress({ run }: { run: RunDetail }) {
  const progress = run.latestProgress;
  if (progress === null || isEnded(run)) return null;
  const percent = progress.percentComplete;
  return (
    <Panel title="Now" right={<span className="note"><Ago at={progress.updatedAt} /></span>}>
      <div className="body">
        {percent !== null && `${Math.round(percent)} % `}
        <Said text={progress.phase} />
        {percent !== null && (
          <svg className="wide work" width="100%" height="6" role="img" aria-label={`${Math.round(percent)} per cent`}>
            <rect className="track" width="100%" height="6" rx="3" />
            <rect className="fill" width={`${percent}%`} height="6" rx="3" />
          </svg>
        )}
      </div>
    </Panel>
  );
}

/** What is left of an ended run: files, branches, the session. */
function Left({ run }: { run: RunDetail }) {
  if (!isEnded(run)) return null;
  const kept = run.workspace?.changes?.keptBranches ?? [];
  const facts: [string, ReactNode][] = [
    ["files", run.filesLeft.length > 0 ? run.filesLeft.map((each) => <Said key={each} text={each} mono />) : null],
    ["worktree", run.workspace === null ? null : run.workspace.kept === false ? "removed" : <Said text={run.workspace.path} mono />],
    ["branch", run.workspace === null ? null : <Said text={run.workspace.branch} mono />],
    ["kept branches", kept.length > 0 ? <Said text={kept.join(", ")} mono /> : null],
    ["continued by", run.continuedBy && <Link href={runAt(run.continuedBy)}>{run.continuedBy}</Link>],
    ["archived", run.archivedAt && <Ago at={run.archivedAt} />],
  ];
  if (facts.every(([, value]) => value === null)) return null;
  return (
    <Panel title="What is left">
      <Facts facts={facts} />
    </Panel>
  );
}

const RUNS_SHOWN = 12;

/** Runs that it has to do with; of many the first. */
function Runs({ title, ids, ...others }: { title: string; ids: readonly string[]; note?: ReactNode; right?: ReactNode }) {
  if (ids.length === 0) return null;
  return (
    <Panel title={title} {...others}>
      <ul className="body links">
        {ids.slice(0, RUNS_SHOWN).map((each) => (
          <RunLinkLine key={each} id={each} />
        ))}
        {ids.length > RUNS_SHOWN && <li className="note">{ids.length - RUNS_SHOWN} more</li>}
      </ul>
    </Panel>
  );
}

function RunLinkLine({ id }: { id: string }) {
  const run = useRun(id).data;
  if (run === undefined) return <li>{id}</li>;
  return (
    <li>
      <StateChip run={run} />{" "}
      <RunLink run={run} />{" "}
      <span className="note">{run.agentId}</span>
    </li>
  );
}

function Parameters({ run }: { run: RunDetail }) {
  const resolved = run.resolved as Record<string, unknown>;
  const text = (value: unknown) => (value === null || value === undefined || value === "" ? null : String(value));
  return (
    <Panel title="Parameters" right={<Link href={runAt(run.runId, "raw")}>all</Link>}>
      <Facts
        facts={[
          ["directory", <Said key="directory" text={run.directory} mono />],
          ["place", text(resolved["place"])],
          ["machine", plain(run.attempts.at(-1)?.node ?? "")],
          ["retries", retriesOf(run)],
          ["budget", run.budget?.text ?? "none"],
          ["tags", plain(run.tags.join(", "))],
          ["plan", run.planId && <Link key="plan" href={`/plans/${run.planId}`}>{run.planId}</Link>],
          ["repeats", run.retryFrom && <>
            <Link href={runAt(run.retryFrom)}>{run.retryFrom}</Link>, <Link href={compareAt(run.retryFrom, run.runId)}>compare</Link>
          </>],
          ["continues", run.continues && <Link key="on" href={runAt(run.continues)}>{run.continues}</Link>],
        ]}
      />
    </Panel>
  );
}
