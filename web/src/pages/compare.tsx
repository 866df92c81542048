// Two runs, or two attempts, beside each other: how they ended, what they took, what differed.
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useResultText, useRun } from "../api/queries";
import type { Attempt, RunDetail } from "../api/types";
import { StateChip, WordChip } from "../components/chip";
import { Tokens, Usd } from "../components/cost";
import { Choice } from "../components/form";
import { Heading } from "../components/heading";
import { Panel, Table } from "../components/panel";
import { runAt } from "../components/routes";
import { RunLink } from "../components/run-link";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { Took } from "../components/when";
import { useAddress } from "../live/address";
import { counted } from "../text/amounts";
import { diffOf, fieldsOf, NONE } from "../text/compare";
import { plain } from "../text/marks";
import { Lines } from "./run/changes";

/** A run, or one of its attempts; only the last one's result and checks are kept. */
type Side = { run: RunDetail; attempt: Attempt | null; isLast: boolean };

export default function ComparePage() {
  const [inAddress, put] = useAddress();
  const [a, b] = [inAddress("a"), inAddress("b")];
  if (a === "" || b === "") {
    return (
      <>
        <Heading title="Compare" />
        <Empty title="Two runs are compared, or two attempts of one">
          <p>
            Choose two in <Link href="/runs">Runs</Link> (<kbd>v</kbd>), and <em>Compare</em>.
          </p>
        </Empty>
      </>
    );
  }
  return <Both a={a} b={b} put={put} />;
}

function Both({ a, b, put }: { a: string; b: string; put: (name: string, value: string) => void }) {
  const [left, right] = [useRun(runOf(a)), useRun(runOf(b))];
  return (
    <Answered query={left}>
      {(one) => (
        <Answered query={right}>
          {(other) => (
            <>
              <Heading title={`Compare: ${plain(one.label)} and ${plain(other.label)}`} />
              <Compared sides={[sideOf(one, a), sideOf(other, b)]} put={put} />
            </>
          )}
        </Answered>
      )}
    </Answered>
  );
}

const runOf = (ref: string) => ref.split("#")[0] ?? ref;

function sideOf(run: RunDetail, ref: string): Side {
  const attempt = run.attempts.find((each) => each.attemptId === ref) ?? null;
  return { run, attempt, isLast: attempt === null || attempt === run.attempts.at(-1) };
}

function Compared({ sides, put }: { sides: readonly [Side, Side]; put: (name: string, value: string) => void }) {
  const [one, other] = sides;
  const both = (of: (side: Side) => ReactNode) => sides.map((each) => <span key={each.attempt?.attemptId ?? each.run.runId}>{of(each)}</span>);
  const verdicts = sides.map(({ run, attempt }) => (attempt ?? run).verdict);
  const fields = fieldsOf(one.run.spec, other.run.spec);
  const differ = fields.filter((each) => each.a !== each.b);
  const heads = sides.map(({ run, attempt }, at) => (
    <>
      <RunLink run={run} className="label" /> <span className="note">{run.agentId} · {run.runId}</span>{" "}
      {run.attempts.length > 1 && (
        <Choice
          name={`attempt of ${at === 0 ? "the first" : "the second"}`}
          value={attempt?.attemptId ?? run.runId}
          options={[[run.runId, "all attempts"], ...run.attempts.map((each) => [each.attemptId, `attempt ${each.number}`] as const)]}
          onChoose={(next) => put(at === 0 ? "a" : "b", next)}
        />
      )}
    </>
  ));
  return (
    <div className="pair">
      <Panel title="How they went">
        <Table
          name="how they went"
          rows={[
            ["", ...heads],
            ["state", ...both(({ run, attempt }) => (attempt === null ? <StateChip run={run} /> : <WordChip word={attempt.outcome?.status ?? "working"} />))],
            ["why", ...both(({ run, attempt }) => <Said text={(attempt === null ? run.why : attempt.outcome?.error) ?? NONE} />)],
            ["contract", ...verdicts.map((each) => (each === null ? NONE : `${each.passed} of ${counted(each.checks, "check")} passed`))],
            ["it said", ...both(({ run, attempt }) => <Said text={(attempt ?? run).claim?.summary ?? NONE} />)],
            ["took", ...both(({ run, attempt }) => ((attempt ?? run).startedAt === null ? NONE : <Took from={(attempt ?? run).startedAt} to={(attempt ?? run).endedAt} />))],
            ["cost", ...both(({ run, attempt }) => <Usd usd={(attempt ?? run).usage?.costUsd ?? null} />)],
            ["tokens", ...both(({ run, attempt }) => <Tokens run={{ usage: (attempt ?? run).usage, subtreeUsage: null, attempt: 1 }} />)],
            ["turns", ...both(({ run, attempt }) => attempt?.turns ?? run.attempts.reduce((sum, each) => sum + each.turns, 0))],
            ["exit code", ...both(({ run, attempt }) => (attempt ?? run.attempts.at(-1))?.exitCode ?? NONE)],
            ["transcript", ...both(({ run, attempt }) => <Link href={`${runAt(run.runId, "transcript")}${attempt ? `?attempt=${attempt.number}` : ""}`}>read it</Link>)],
          ]}
        />
      </Panel>
      <Panel title="Parameters" note={one.run.runId === other.run.runId ? "attempts of one run have the same" : `${counted(differ.length, "differs", "differ")}, ${fields.length - differ.length} are the same`}>
        {differ.length > 0 && <Table name="parameters" rows={differ.map(({ name, a, b }) => [<code>{name}</code>, <Said text={a} mono />, <Said text={b} mono />])} />}
      </Panel>
      <Checks sides={sides} />
      <Results sides={sides} />
    </div>
  );
}

function Checks({ sides }: { sides: readonly [Side, Side] }) {
  const found = sides.map(({ run, isLast }) => new Map((isLast ? run.verification?.checks : [])?.map((each) => [`${each.type} ${each.target}`, each])));
  const names = [...new Set(found.flatMap((each) => [...each.keys()]))];
  if (names.length === 0) return null;
  return (
    <Panel title="Checks" note={sides.every((each) => each.isLast) ? undefined : "only of the last attempt: those of others are not kept"}>
      <Table
        name="checks"
        rows={names.map((name) => [
          <Said text={name} mono />,
          ...found.map((each) => {
            const check = each.get(name);
            return check === undefined ? NONE : <><WordChip word={check.passed ? "ok" : "failed"} text={check.passed ? "passed" : "failed"} /> <Said text={check.reason ?? check.evidence ?? ""} /></>;
          }),
        ])}
      />
    </Panel>
  );
}

function Results({ sides: [one, other] }: { sides: readonly [Side, Side] }) {
  const [a, b] = [useResult(one), useResult(other)];
  const lines = a === undefined || b === undefined ? undefined : diffOf(a, b);
  const same = a === b;
  return (
    <Panel title="Results" note={lines === undefined ? "loading …" : same ? "the same" : "− only the first, + only the second"}>
      {lines === null ? <Empty title="Too much differs to compare it line by line" /> : <Lines lines={lines ?? []} />}
    </Panel>
  );
}

/** The whole result; "" = there is none, and of an attempt before the last none is kept. */
function useResult({ run, isLast }: Side): string | undefined {
  const isThere = isLast && run.result !== null;
  const whole = useResultText(run.runId, run.resultBytes, isThere);
  return isThere ? whole.data : "";
}
