// A new run as a form: what, who, where, done when, at most. What would start is shown meanwhile.
import { useId, useState } from "react";
import { useLocation } from "wouter";
import { post } from "../api/client";
import { useAgents } from "../api/queries";
import type { ConfiguredAgent, SpawnReceipt } from "../api/types";
import { useDraft } from "../live/drafts";
import { useDryRun } from "../live/dry-run";
import { CHECKS, DEFAULT_AGENT, drafted, formOf, type Check, type Form as Filled } from "../text/new-run";
import { textOf, type Field } from "../text/spec-schema";
import { Act, useWhyNot } from "./act";
import { Choice, Form } from "./form";
import { Panel } from "./panel";
import { runAt } from "./routes";
import { Refused, WouldStart } from "./would-start";

/** Their labels and words; the other fields have the parameters'. */
const FIRST: Readonly<Record<string, readonly [string, string]>> = {
  task: ["task", "what to do, complete in itself"],
  agentId: ["agent", "who does it"],
  cwd: ["directory", "where it works"],
};

type Props = { fields: readonly Field[]; given: Readonly<Record<string, unknown>>; name: string };

export function NewRunForm({ fields, given, name }: Props) {
  const [kept, keep, forget] = useDraft(name);
  const [problem, setProblem] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [, navigate] = useLocation();
  const whyNot = useWhyNot();
  const form = kept === "" ? formOf(given) : (JSON.parse(kept) as Filled);
  const { texts, checks } = form;
  const agents = useAgents(texts["cwd"]?.startsWith("/") ? texts["cwd"] : "").data?.agents ?? [];
  const draft = drafted(fields, form);
  const found = useDryRun(draft);
  const change = (next: Partial<Filled>) => {
    setProblem(null);
    keep(JSON.stringify({ ...form, ...next }));
  };
  const write = (field: string, text: string) => change({ texts: { ...texts, [field]: text } });
  const start = async () => {
    if ("error" in draft || found?.planned === undefined) return;
    setSending(true);
    try {
      const receipt = await post<SpawnReceipt>("/v1/runs", { spec: draft.spec, defaultAgent: DEFAULT_AGENT });
      forget();
      navigate(runAt(receipt.runId));
    } catch (error) {
      setProblem(error);
    } finally {
      setSending(false);
    }
  };
  const shown = (each: Field) => (
    <FieldInput key={each.name} field={each} text={texts[each.name] ?? ""} agents={agents} onChange={(text) => write(each.name, text)} />
  );
  const first = Object.keys(FIRST).flatMap((each) => fields.filter((field) => field.name === each));
  const others = fields.filter((each) => !(each.name in FIRST));
  const sections = [...new Set(others.map((each) => each.section))];
  return (
    <Form className="new-run" onSend={start}>
      <Panel title="What to do">
        <div className="fields">{first.map(shown)}</div>
      </Panel>
      <Panel title="Done when" note="nothing = its word is taken">
        <Checks checks={checks} onChange={(next) => change({ checks: next })} />
      </Panel>
      <Panel title="At most">
        <div className="fields">
          <Amount label="dollars" text={texts["maxCostUsd"] ?? ""} onChange={(text) => write("maxCostUsd", text)} />
          <Amount label="minutes" text={texts["minutes"] ?? ""} onChange={(text) => write("minutes", text)} />
        </div>
      </Panel>
      <Panel title="More" note="each has a default">
        {sections.map((section) => (
          <details key={section}>
            <summary className="body">{section}</summary>
            <div className="fields">{others.filter((each) => each.section === section).map(shown)}</div>
          </details>
        ))}
      </Panel>
      {found?.planned !== undefined && <WouldStart planned={found.planned} />}
      <Refused error={problem ?? found?.problem ?? null} />
      <div className="filters">
        <Act type="submit" className="primary" disabled={isSending || found?.planned === undefined}>
          {isSending ? "starting …" : "Start it"}
        </Act>
        <span className="note">{whyNot ?? ("error" in draft ? draft.error : "")}</span>
        {kept !== "" && (
          <button type="button" onClick={forget}>Clear</button>
        )}
      </div>
    </Form>
  );
}

function Checks({ checks, onChange }: { checks: readonly Check[]; onChange: (next: readonly Check[]) => void }) {
  const put = (at: number, next: Partial<Check>) => onChange(checks.map((each, place) => (place === at ? { ...each, ...next } : each)));
  return (
    <div className="body">
      {checks.map((each, at) => (
        <div key={at} className="filters" role="group" aria-label={`check ${at + 1}`}>
          <Choice name="kind" value={each.kind} options={Object.entries(CHECKS)} onChoose={(kind) => put(at, { kind: kind as Check["kind"] })} />
          <input autoFocus={each.text === ""} aria-label={each.kind === "command" ? "command" : "file"} className="mono" value={each.text} onChange={(event) => put(at, { text: event.target.value })} />
          {each.kind === "regex" && (
            <input aria-label="regular expression" className="mono" value={each.pattern} onChange={(event) => put(at, { pattern: event.target.value })} />
          )}
          <button type="button" onClick={() => onChange(checks.filter((_, place) => place !== at))}>Remove</button>
        </div>
      ))}
      <button type="button" onClick={() => onChange([...checks, { kind: "file", text: "", pattern: "" }])}>Add a check</button>
    </div>
  );
}

function Amount({ label, text, onChange }: { label: string; text: string; onChange: (text: string) => void }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input id={id} value={text} inputMode="decimal" autoComplete="off" onChange={(event) => onChange(event.target.value)} />
    </div>
  );
}

type InputProps = { field: Field; text: string; agents: readonly ConfiguredAgent[]; onChange: (text: string) => void };

function FieldInput({ field, text, agents, onChange }: InputProps) {
  const id = useId();
  const set = (event: { target: { value: string } }) => onChange(event.target.value);
  const common = { id, value: text, onChange: set, "aria-describedby": `${id}-words` };
  const [label, words] = FIRST[field.name] ?? [field.name, field.words];
  const hint = field.default === null || field.default === "" ? "" : textOf(field.default);
  return (
    <div className={field.name === "task" || field.kind === "json" ? "field whole" : "field"}>
      <label htmlFor={id}>{label}</label>
      {field.name === "task" ? (
        <textarea {...common} rows={4} required autoFocus />
      ) : field.kind === "json" ? (
        <textarea {...common} rows={2} placeholder="JSON" className="mono" />
      ) : field.name === "agentId" ? (
        <select {...common}>
          <option value="">the configured default, else {DEFAULT_AGENT}</option>
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
        {words}
        {field.kind === "list" && " (with commas between)"}
        {field.least !== null && field.most !== null && ` (${field.least.toLocaleString("en")} to ${field.most.toLocaleString("en")})`}
      </small>
    </div>
  );
}
