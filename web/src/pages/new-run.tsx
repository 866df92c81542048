// A new run or plan. What would be started is shown first; the second press starts it.
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { Heading } from "../components/heading";
import { NewPlanForm } from "../components/new-plan-form";
import { NewRunForm } from "../components/new-run-form";
import { Answered, Skeleton } from "../components/states";
import { useLastDirectory, useOpenApi, useRun } from "../api/queries";
import { fieldsOf } from "../text/spec-schema";

export default function NewRunPage() {
  const [search] = useSearchParams();
  const [isPlan, setPlan] = useState(search.get("plan") === "1");
  const from = search.get("from");
  return (
    <>
      <Heading title="New run" />
      <div className="filters" role="group" aria-label="one run or a plan">
        <button type="button" aria-pressed={!isPlan} onClick={() => setPlan(false)}>One run</button>
        <button type="button" aria-pressed={isPlan} onClick={() => setPlan(true)}>A plan</button>
        <span className="note">
          nothing starts before you have seen what would start · <Link href="/agents">who fits?</Link>
        </span>
      </div>
      {isPlan ? <PlanForm /> : from === null ? <Fresh /> : <Again id={from} />}
    </>
  );
}

function PlanForm() {
  const directory = useLastDirectory();
  return directory === null ? <Skeleton /> : <NewPlanForm directory={directory} />;
}

function Fresh() {
  const openApi = useOpenApi();
  const directory = useLastDirectory();
  if (directory === null) return <Skeleton />;
  return <Answered query={openApi}>{(document) => <NewRunForm fields={fieldsOf(document)} given={{ cwd: directory }} name="run" />}</Answered>;
}

function Again({ id }: { id: string }) {
  const openApi = useOpenApi();
  const run = useRun(id);
  return (
    <Answered query={run}>
      {(found) => (
        <Answered query={openApi}>
          {(document) => <NewRunForm fields={fieldsOf(document)} given={{ cwd: found.directory, ...(found.originalSpawnParams as object) }} name={`run/${id}`} />}
        </Answered>
      )}
    </Answered>
  );
}
