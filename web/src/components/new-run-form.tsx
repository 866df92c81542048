// The spawn parameters as a form. Only what is filled in is sent; the rest has its defaults.
import { useId, useState } from "react";
import { useLocation } from "wouter";
import { post } from "../api/client";
import { useAgents } from "../api/queries";
import type { ConfiguredAgent, DryRun, SpawnReceipt } from "../api/types";
import { counted } from "../text/amounts";
import { textOf, valueOf, type Field } from "../text/spec-schema";
import { Act, useWhyNot } from "./act";
import { Panel } from "./panel";
import { runAt } from "./routes";
import { Refused, WouldStart } from "./would-start";

const FIRST = ["task", "agentId", "label", "cwd"];

type Draft = { spec: Record<string, unknown> } | { error: string };

export function NewRunForm({ fields, given }: { fields: readonly Field[]; given: Readonly<Record<string, unknown>> }) {
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(Object.entries(given).map(([name, value]) => [name, textOf(value)])));
  const [planned, setPlanned] = useState<DryRun | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const agents = useAgents(texts["cwd"]?.startsWith("/") ? texts["cwd"] : "").data?.agents ?? [];
  const draft = drafted(fields, texts);
  const change = (name: string, text: string) => {
    setTexts({ ...texts, [name]: text });
    setPlanned(null);
    setProblem(null);
  };
  const submit = async () => {
    if ("error" in draft) return setProblem(new Error(draft.error));
    setProblem(null);
    setSending(true);
    try {
      if (planned === null) return setPlanned(await post<DryRun>("/v1/runs/dry-run", { spec: draft.spec }));
      const receipt = await post<SpawnReceipt>("/v1/runs", { spec: draft.spec });
      navigate(runAt(receipt.runId));
    } catch (error) {
      setPlanned(null);
      setProblem(error);
    } finally {
      setSending(false);
    }
  };
  const shown = (each: Field) => (
    <FieldInput key={each.name} field={each} text={texts[each.name] ?? ""} agents={agents} onChange={(text) => change(each.name, text)} />
  );
  const first = FIRST.flatMap((name) => fields.filter((each) => each.name === name));
  const others = fields.filter((each) => !FIRST.includes(each.name));
  return (
    <form
      className="new-run"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Panel title="What to do">
        <div className="fields">{first.map(shown)}</div>
        <details>
          <summary className="body">{counted(others.length, "more parameter")}</summary>
          <div className="fields">{others.map(shown)}</div>
        </details>
      </Panel>
      {planned !== null && <WouldStart planned={planned} />}
      <Refused error={problem} />
      <div className="filters">
        <Act type="submit" className="primary" disabled={isSending}>
          {isSending ? "asking …" : planned !== null ? "Start it" : "Show what would start"}
        </Act>
        {whyNot !== null && <span className="note">{whyNot}</span>}
      </div>
    </form>
  );
}

function drafted(fields: readonly Field[], texts: Readonly<Record<string, string>>): Draft {
  const spec: Record<string, unknown> = {};
  for (const field of fields) {
    try {
      const value = valueOf(field, texts[field.name] ?? "");
      if (value !== undefined) spec[field.name] = value;
    } catch {
      return { error: `${field.name} must be JSON` };
    }
  }
  if (spec["task"] === undefined) return { error: "task is required: what to do" };
  if (spec["cwd"] === undefined && spec["continues"] === undefined) return { error: "cwd is required: the directory it works in" };
  return { spec };
}

type InputProps = { field: Field; text: string; agents: readonly ConfiguredAgent[]; onChange: (text: string) => void };

function FieldInput({ field, text, agents, onChange }: InputProps) {
  const id = useId();
  const set = (event: { target: { value: string } }) => onChange(event.target.value);
  const common = { id, value: text, onChange: set, "aria-describedby": `${id}-words` };
  const hint = field.default === null || field.default === "" ? "" : textOf(field.default);
  return (
    <div className={field.name === "task" || field.kind === "json" ? "field whole" : "field"}>
      <label htmlFor={id}>{field.name}</label>
      {field.name === "task" ? (
        <textarea {...common} rows={4} required />
      ) : field.kind === "json" ? (
        <textarea {...common} rows={2} placeholder="JSON" className="mono" />
      ) : field.name === "agentId" ? (
        <select {...common}>
          <option value="">the default agent</option>
          <option value="auto">auto: whoever fits</option>
          {agents.map((each) => (
            <option key={each.id} value={each.id}>
              {each.id}
              {each.description === null ? "" : `: ${each.description}`}
            </option>
          ))}
        </select>
      ) : field.kind === "choice" || field.kind === "flag" ? (
        <select {...common}>
          <option value="">{hint === "" ? "default" : `default: ${hint}`}</option>
          {(field.kind === "flag" ? ["true", "false"] : field.choices).map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      ) : (
        <input {...common} placeholder={hint} autoComplete="off" inputMode={field.kind === "number" ? "numeric" : undefined} />
      )}
      <small id={`${id}-words`}>
        {field.words}
        {field.kind === "list" && " (with commas between)"}
        {field.least !== null && field.most !== null && ` (${field.least.toLocaleString("en")} to ${field.most.toLocaleString("en")})`}
      </small>
    </div>
  );
}
