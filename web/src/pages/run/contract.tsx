// The contract: each check with its evidence, and on failure what was said beside what was found.
import type { Check, RunDetail } from "../../api/types";
import { WordChip } from "../../components/chip";
import { Panel } from "../../components/panel";
import { Said } from "../../components/said";
import { Ago } from "../../components/when";
import { isEnded } from "../../text/states";

type Wanted = { target: string; demand: string };

export function Contract({ run }: { run: RunDetail }) {
  const contract = run.spec["verification"] as Record<string, unknown> | null | undefined;
  if (!contract) return null;
  const found = run.verification;
  const onFailure = String(contract["onFailure"] ?? "fail");
  const passed = found?.checks.filter((each) => each.passed).length ?? 0;
  return (
    <Panel
      title="Contract"
      note={
        found === null ? (
          "checked when the worker says that it is done"
        ) : found.vacuous ? (
          <WordChip word="vacuous" text="vacuous: all of it held before the work began, so it proves nothing" />
        ) : (
          <WordChip
            word={found.status === "passed" ? "ok" : found.status === "failed" ? "failed" : "waiting"}
            text={found.status === "skipped" ? "could not check" : `${passed} of ${found.checks.length} passed`}
          />
        )
      }
      right={
        <span className="note">
          {found?.verifiedAt && (
            <>
              checked <Ago at={found.verifiedAt} />
              {" · "}
            </>
          )}
          on failure: {onFailure}
        </span>
      }
    >
      <ul className="list checks">
        {found === null || found.checks.length === 0
          ? wantedOf(contract).map((each) => (
              <li key={`${each.target}/${each.demand}`}>
                <WordChip word="waiting" text={isEnded(run) ? "not checked" : "not yet"} />
                <Said text={each.target} mono />
                <span className="note">{each.demand}</span>
              </li>
            ))
          : found.checks.map((each, at) => <CheckLine key={at} check={each} vacuous={found.vacuous} />)}
      </ul>
      {found?.status === "failed" && <SaidAndFound run={run} />}
    </Panel>
  );
}

function CheckLine({ check, vacuous }: { check: Check; vacuous: boolean }) {
  const word = !check.passed ? "failed" : vacuous ? "vacuous" : "ok";
  return (
    <li>
      <WordChip word={word} text={word === "ok" ? "passed" : word} />
      <div>
        <Said text={check.target === "" ? check.type : check.target} mono />
        {(check.reason ?? check.evidence) !== null && (
          <p className="note">
            <Said text={[check.reason, check.evidence].filter((each) => each !== null && each !== "").join(" · ")} />
          </p>
        )}
      </div>
      <span className="note">{check.type}</span>
    </li>
  );
}

/** The worker's claim beside the evidence: the two things a person compares. */
function SaidAndFound({ run }: { run: RunDetail }) {
  const claim = run.report?.summary ?? run.result ?? run.lastWords;
  const failed = run.verification?.checks.filter((each) => !each.passed) ?? [];
  return (
    <div className="said-found">
      <div>
        <h3>What it said</h3>
        {claim ? (
          <p>
            “<Said text={claim.slice(0, 600)} />
            {claim.length > 600 && " …"}”
          </p>
        ) : (
          <p className="note">nothing</p>
        )}
        <p className="note">
          {run.attempts.length === 1 ? "one attempt" : `${run.attempts.length} attempts`}
          {run.attempts.at(-1)?.exitCode != null && `, exit code ${run.attempts.at(-1)?.exitCode}`}
        </p>
      </div>
      <div>
        <h3>What was found</h3>
        {failed.map((each, at) => (
          <p key={at}>
            <Said text={each.reason ?? each.evidence ?? `${each.target} does not hold`} />
          </p>
        ))}
      </div>
    </div>
  );
}

/** What a contract asks for, before anybody looked. */
function wantedOf(contract: Record<string, unknown>): Wanted[] {
  const list = (name: string) => (Array.isArray(contract[name]) ? (contract[name] as unknown[]) : []);
  const found: Wanted[] = list("artifacts").map((each) => {
    if (typeof each === "string") return { target: each, demand: "exists" };
    const { path, ...rest } = each as Record<string, unknown>;
    return { target: String(path ?? ""), demand: demandOf(rest) };
  });
  for (const command of list("commands")) {
    const text = typeof command === "string" ? command : String((command as Record<string, unknown>)["command"] ?? "");
    found.push({ target: text, demand: "exit code 0" });
  }
  if (contract["requireCompletionReport"] === true) found.push({ target: "completion report", demand: "given" });
  const changes = contract["changes"] as Record<string, unknown> | null | undefined;
  if (changes) found.push({ target: "changes", demand: demandOf(changes) });
  if (contract["judge"]) found.push({ target: "judge", demand: "agrees" });
  return found;
}

function demandOf(rest: Record<string, unknown>): string {
  const said = Object.entries(rest).filter(([, value]) => value !== null && value !== false && !(Array.isArray(value) && value.length === 0));
  return said.map(([name, value]) => (value === true ? name : `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)).join(", ") || "exists";
}
