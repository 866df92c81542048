// A plan as JSON: the daemon says what its steps would come to, before they are started.
import { useState } from "react";
import { useLocation } from "wouter";
import { reason } from "../api/actions";
import { post } from "../api/client";
import type { DryRun, PlanReceipt, ScheduleRow } from "../api/types";
import { useDraft } from "../live/drafts";
import { toldDone, toldFailed } from "../live/toasts";
import { counted } from "../text/amounts";
import { plain } from "../text/marks";
import { DEFAULT_AGENT } from "../text/new-run";
import { Act } from "./act";
import { Form } from "./form";
import { Panel } from "./panel";
import { planAt, runAt } from "./routes";
import { Refused, WouldStart } from "./would-start";

const EXAMPLE = `{
  "name": "nightly",
  "specs": [
    {"label": "list", "task": "ls > files.txt"},
    {"label": "count", "task": "wc -l files.txt", "dependsOn": ["list"]}
  ]
}`;

type Plan = { name?: string; specs: Record<string, unknown>[]; budget?: unknown };

export function NewPlanForm({ directory }: { directory: string }) {
  const [text, setText, clear] = useDraft("plan");
  const [cwd, setCwd] = useState(directory);
  const [planned, setPlanned] = useState<DryRun | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [, navigate] = useLocation();
  const submit = async () => {
    if (isSending) return;
    setSending(true);
    setProblem(null);
    try {
      const plan = planIn(text);
      if (planned === null) return setPlanned(await post<DryRun>("/v1/plans/dry-run", { ...plan, cwd, defaultAgent: DEFAULT_AGENT }));
      const receipt = await post<PlanReceipt>("/v1/plans", { ...plan, cwd, defaultAgent: DEFAULT_AGENT });
      clear();
      navigate(receipt.planId === null ? runAt(receipt.receipts[0]?.runId ?? "last") : planAt(receipt.planId));
    } catch (error) {
      setPlanned(null);
      setProblem(error);
    } finally {
      setSending(false);
    }
  };
  return (
    <Form className="new-run" onSend={submit}>
      <Panel title="Plan" note="as in a plan file: name, budget, specs (or runs)">
        <div className="fields">
          <div className="field whole">
            <label htmlFor="plan-text">plan</label>
            <textarea
              id="plan-text"
              className="mono"
              rows={12}
              placeholder={EXAMPLE}
              value={text}
              spellCheck={false}
              onChange={(event) => {
                setText(event.target.value);
                setPlanned(null);
              }}
            />
          </div>
          <div className="field">
            <label htmlFor="plan-cwd">cwd</label>
            <input id="plan-cwd" value={cwd} onChange={(event) => {
                setCwd(event.target.value);
                setPlanned(null);
              }} />
            <small>where steps that name no directory work</small>
          </div>
        </div>
      </Panel>
      {planned !== null && <WouldStart planned={planned} />}
      {planned !== null && <AtTimes plan={planIn(text)} cwd={cwd} done={clear} />}
      <Refused error={problem} />
      <Act type="submit" className="primary" disabled={isSending || text.trim() === ""}>
        {planned !== null ? `Start ${counted(planned.runs.length, "run")}` : "Show what would start"}
      </Act>
    </Form>
  );
}

/** The same at its times, as a schedule, in place of now. */
function AtTimes({ plan, cwd, done }: { plan: Plan; cwd: string; done: () => void }) {
  const [name, setName] = useState(plan.name ?? "");
  const [when, setWhen] = useState("0 3 * * *");
  const [, navigate] = useLocation();
  const add = async () => {
    try {
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const { name: planName = name, ...others } = plan;
      const made = await post<ScheduleRow>("/v1/schedules", { ...others, planName, name, when, zone, cwd, defaultAgent: DEFAULT_AGENT });
      toldDone(`${plain(made.name)}: ${made.words}`);
      done();
      navigate("/schedules");
    } catch (error) {
      toldFailed("It was not scheduled", reason(error));
    }
  };
  return (
    <Panel title="Or at its times" note="a line of cron, @daily, or every 15m; in this browser’s time zone">
      <div className="body filters">
        <label className="check">name <input value={name} onChange={(event) => setName(event.target.value)} /></label>
        <label className="check">when <input className="mono" value={when} onChange={(event) => setWhen(event.target.value)} /></label>
        <Act disabled={name.trim() === "" || when.trim() === ""} onClick={() => void add()}>Schedule it</Act>
      </div>
    </Panel>
  );
}

/** @throws Error It is no JSON, or has no steps. */
function planIn(text: string): Plan {
  const { runs, specs = runs, ...rest } = JSON.parse(text) as Plan & { runs?: Record<string, unknown>[] };
  if (!Array.isArray(specs) || specs.length === 0) throw new Error("specs is required: a list of at least one run");
  return { ...rest, specs };
}
