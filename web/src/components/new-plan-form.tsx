// A plan as JSON: its steps are shown in the order in which they could start, before they are sent.
import { useState } from "react";
import { useLocation } from "wouter";
import { reason } from "../api/actions";
import { post } from "../api/client";
import type { PlanReceipt } from "../api/types";
import { useDraft } from "../live/drafts";
import { counted } from "../text/amounts";
import { checkedPlan, type Checked } from "../text/plan-steps";
import { useWhyNot } from "./actions-allowed";
import { Panel } from "./panel";
import { planAt, runAt } from "./routes";
import { Said } from "./said";

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
  const [checked, setChecked] = useState<Checked | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const submit = async () => {
    setProblem(null);
    try {
      const plan = planIn(text);
      const found = checkedPlan(plan.specs);
      if (checked === null || found.problems.length > 0) return setChecked(found);
      const receipt = await post<PlanReceipt>("/v1/plans", { ...plan, cwd });
      clear();
      navigate(receipt.planId === null ? runAt(receipt.receipts[0]?.runId ?? "last") : planAt(receipt.planId));
    } catch (error) {
      setProblem(reason(error));
    }
  };
  const isReady = checked !== null && checked.problems.length === 0;
  return (
    <form
      className="new-run"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
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
                setChecked(null);
              }}
            />
          </div>
          <div className="field">
            <label htmlFor="plan-cwd">cwd</label>
            <input id="plan-cwd" value={cwd} onChange={(event) => setCwd(event.target.value)} />
            <small>where steps that name no directory work</small>
          </div>
        </div>
      </Panel>
      {checked !== null && (
        <Panel title="This would start" note="nothing is started yet; the daemon checks it once more when it is">
          {checked.problems.map((each) => (
            <p key={each} className="body bad">
              {each}
            </p>
          ))}
          <ol className="steps">
            {checked.layers.map((layer, at) => (
              <li key={at}>
                <span className="note">{at === 0 ? "at once" : `then (${at + 1})`}</span>
                <span>
                  {counted(layer.length, "run")}: <Said text={layer.map((each) => `${each.label}${each.agent === null ? "" : ` (${each.agent})`}`).join(", ")} />
                </span>
              </li>
            ))}
          </ol>
        </Panel>
      )}
      {problem !== null && (
        <div className="trouble" role="alert">
          <strong>Nothing was started.</strong> <Said text={problem} />
        </div>
      )}
      <button type="submit" className="primary" disabled={whyNot !== null || text.trim() === ""} title={whyNot ?? undefined}>
        {isReady ? `Start ${counted(checked.layers.flat().length, "run")}` : "Show what would start"}
      </button>
    </form>
  );
}

/** @throws Error It is no JSON, or has no steps. */
function planIn(text: string): Plan {
  const { runs, specs = runs, ...rest } = JSON.parse(text) as Plan & { runs?: Record<string, unknown>[] };
  if (!Array.isArray(specs) || specs.length === 0) throw new Error("specs is required: a list of at least one run");
  return { ...rest, specs };
}
