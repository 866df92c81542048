// A task that is about to start, with all that comes from the run before it; Enter starts what is shown.
import { useState, type RefObject } from "react";
import { useLocation } from "wouter";
import { post } from "../api/client";
import { useLastContract, useLastDirectory, useOpenApi } from "../api/queries";
import type { SpawnReceipt } from "../api/types";
import { keepDraft } from "../live/drafts";
import { useDryRun } from "../live/dry-run";
import { DEFAULT_AGENT, drafted, formOf } from "../text/new-run";
import { fieldsOf } from "../text/spec-schema";
import { Act, useWhyNot } from "./act";
import { Form } from "./form";
import { runAt } from "./routes";
import { Skeleton } from "./states";
import { Refused, WouldStart } from "./would-start";

type Props = { task: string; agent: string; start: RefObject<() => void>; done: () => void; leave: () => void };

export default function StartTask(props: Props) {
  const directory = useLastDirectory();
  const contract = useLastContract();
  const openApi = useOpenApi().data;
  if (directory === null || contract === null || openApi === undefined) return <Skeleton />;
  return <Ready {...props} directory={directory} contract={contract} fields={fieldsOf(openApi)} />;
}

type Known = { directory: string; contract: object; fields: ReturnType<typeof fieldsOf> };

function Ready({ task, agent, start, done, leave, directory, contract, fields }: Props & Known) {
  const [cwd, setCwd] = useState(directory);
  const [isPromised, setPromised] = useState(true);
  const [problem, setProblem] = useState<{ of: string; error: unknown } | null>(null);
  const [isSending, setSending] = useState(false);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const hasContract = Object.keys(contract).length > 0;
  const form = formOf({ task, cwd, agentId: agent, ...(hasContract && isPromised ? { verification: contract } : {}) });
  const draft = drafted(fields, form);
  const found = useDryRun(draft);
  const send = async () => {
    // What is not shown yet is not started.
    if ("error" in draft || found?.planned === undefined || isSending) return;
    setSending(true);
    try {
      const { runId } = await post<SpawnReceipt>("/v1/runs", { spec: draft.spec, defaultAgent: DEFAULT_AGENT });
      done();
      navigate(runAt(runId));
    } catch (error) {
      setProblem({ of: found.asked, error });
      setSending(false);
    }
  };
  start.current = () => void send();
  const asForm = () => {
    keepDraft("run", JSON.stringify(form));
    leave();
    navigate("/new");
  };
  return (
    <Form className="start-task" onSend={send}>
      <div className="filters">
        <label className="search">
          directory <input className="mono" value={cwd} onChange={(event) => setCwd(event.target.value)} autoComplete="off" />
        </label>
        {hasContract && (
          <label className="check button">
            <input type="checkbox" checked={isPromised} onChange={() => setPromised(!isPromised)} /> the last run’s contract
          </label>
        )}
      </div>
      {found?.planned !== undefined && <WouldStart planned={found.planned} />}
      <Refused error={problem !== null && problem.of === found?.asked ? problem.error : (found?.problem ?? null)} />
      <footer className="filters">
        <Act type="submit" className="primary" disabled={isSending || found?.planned === undefined} hint="↵">
          {isSending ? "starting …" : "Start it"}
        </Act>
        <button type="button" onClick={asForm}>All parameters</button>
        <span className="note" role="status">
          {whyNot ?? ("error" in draft ? draft.error : found === null ? "asking what would start …" : "")}
        </span>
      </footer>
    </Form>
  );
}
