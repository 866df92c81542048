// The daemon's dry run: what a call would start, where it would wait and what it may use at most.
import { reason } from "../api/actions";
import { Problem } from "../api/client";
import type { DryRun, PlannedRun } from "../api/types";
import { count, counted, dollars } from "../text/amounts";
import { span } from "../text/times";
import { Facts, Panel, Table } from "./panel";
import { Said } from "./said";

export function WouldStart({ planned }: { planned: DryRun }) {
  const [only] = planned.runs;
  return (
    <Panel title="This would start" note={`${most(planned)}; nothing is started yet`}>
      {planned.runs.length === 1 && only !== undefined ? <One run={only} /> : <Steps runs={planned.runs} />}
      {planned.runs.map((run, at) =>
        run.warnings.map((each) => (
          <p key={`${at}/${each}`} className="body note">
            <Said text={planned.runs.length === 1 ? each : `${run.label}: ${each}`} />
          </p>
        )),
      )}
    </Panel>
  );
}

function most(planned: DryRun): string {
  const words = [planned.maxTokens !== null && `${count(planned.maxTokens)} tokens`, planned.maxTotalTokens !== null && `${count(planned.maxTotalTokens)} total tokens`, planned.maxCostUsd !== null && dollars(planned.maxCostUsd), planned.maxSeconds !== null && span(planned.maxSeconds * 1_000)].filter(Boolean);
  return words.length === 0 ? "nothing bounds what it may use" : `at most ${words.join(" and ")}`;
}

/** When it would begin, in a few words. */
export function startsWhen(run: PlannedRun): string {
  if (run.runId !== null) return `its key made ${run.runId} before: nothing new would start`;
  if (run.waitsFor.length > 0) return `after ${run.waitsFor.map((each) => each.label).join(", ")}`;
  if (run.question !== null) return `when somebody allows it: ${run.question}`;
  if (run.startsAtOnce) return "at once";
  if (run.phase !== "queued") return run.phase;
  if (run.lane.limit !== null) return run.lane.limit;
  return `lane ${run.lane.name}: ${run.lane.used} of ${counted(run.lane.slots, "slot")} taken, ${run.lane.ahead} ahead`;
}

function One({ run }: { run: PlannedRun }) {
  const { budget } = run;
  const limits = budget === null ? [] : [
    budget.maxTokens !== null && `${count(budget.maxTokens)} tokens`,
    budget.maxTotalTokens !== null && `${count(budget.maxTotalTokens)} total tokens`,
    budget.maxCostUsd !== null && dollars(budget.maxCostUsd),
    budget.maxRuns !== null && counted(budget.maxRuns, "run"),
    budget.maxSeconds !== null && span(budget.maxSeconds * 1_000),
  ].filter(Boolean);
  return (
    <Facts
      facts={[
        ["starts", <Said key="starts" text={startsWhen(run)} />],
        ["agent", run.chosen === null ? `${run.agentId} (${run.runtime})` : `${run.agentId} (${run.runtime}): ${run.chosen}`],
        ["model", run.resolvedModel ?? "the program’s own choice"],
        ["may", run.access?.text],
        ["tools", run.effectiveTools === null ? "what its runtime offers" : run.effectiveTools.join(", ") || "none"],
        ["without", run.toolsDeny.join(", ")],
        ["deadline", run.runTimeoutSeconds === null ? "none" : span(run.runTimeoutSeconds * 1_000)],
        ["attempts", run.attemptsMax],
        ["budget", limits.length === 0 ? "none" : `${limits.join(", ")}${budget?.shared ? ", shared with others below the same run" : ""}`],
        ["contract", <Said key="contract" text={contractOf(run)} />],
        ["works in", <code key="cwd">{run.workspace?.path ?? run.cwd}</code>],
        ["branch", run.workspace?.branch],
      ]}
    />
  );
}

function contractOf(run: PlannedRun): string {
  if (run.checks.length === 0) return "none: its word is taken";
  const checks = run.checks.map((each) => (each.type === "completion_report" ? each.target : `${each.type} ${each.target}`)).join(", ");
  return run.vacuous ? `${checks}; all of it holds already (vacuous)` : checks;
}

function Steps({ runs }: { runs: readonly PlannedRun[] }) {
  return (
    <Table
      name="what would start"
      columns={["run", "agent", "starts", "contract"]}
      rows={runs.map((run) => [
        <Said text={run.label} />,
        run.agentId,
        <Said text={startsWhen(run)} />,
        <span className="note">
          <Said text={contractOf(run)} />
        </span>,
      ])}
    />
  );
}

type Refusal = { step: number; field: string | null; message: string };

/** Why nothing was started; of a plan every step that is refused. */
export function Refused({ error }: { error: unknown }) {
  if (error === null) return null;
  const { problems = [] } = error instanceof Problem ? (error.details as { problems?: Refusal[] }) : {};
  return (
    <div className="trouble" role="alert">
      <strong>Nothing was started.</strong>
      {problems.length > 1 ? (
        <ul>
          {problems.map((each) => (
            <li key={each.step}>
              <Said text={each.message} />
            </li>
          ))}
        </ul>
      ) : (
        <>
          {" "}
          <Said text={reason(error)} />
        </>
      )}
    </div>
  );
}
