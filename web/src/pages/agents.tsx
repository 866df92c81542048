// The configured agents: what they are for, how they do, what was probed, and who fits some work.
import { useDeferredValue, useEffect, useState } from "react";
import { reason } from "../api/actions";
import { remove } from "../api/client";
import { useAgents, useSuggestions, useTrackRecords } from "../api/queries";
import type { ConfiguredAgent, Rate, TrackRecords } from "../api/types";
import { Act } from "../components/act";
import { WordChip } from "../components/chip";
import { Usd } from "../components/cost";
import { Choice } from "../components/form";
import { Heading } from "../components/heading";
import { Panel, Table } from "../components/panel";
import { Said } from "../components/said";
import { Answered, Command, Empty } from "../components/states";
import { Ago } from "../components/when";
import { useAddress } from "../live/address";
import { queries } from "../live/live";
import { toldDone, toldFailed } from "../live/toasts";
import { counted } from "../text/amounts";
import { span } from "../text/times";

export default function AgentsPage() {
  const agents = useAgents();
  const [inAddress, put] = useAddress();
  const days = Number(inAddress("days") || 30);
  const [hint, setHint] = useState("");
  const records = useTrackRecords("agent", days);
  // No event says what was allowed meanwhile, at another place perhaps.
  useEffect(refresh, []);
  return (
    <>
      <Heading title="Agents" note={agents.data && `${agents.data.agents.length} configured`} />
      <div className="filters">
        <label className="search">
          <span className="visually-hidden">what is to be done</span>
          <input value={hint} placeholder="what is to be done: who fits, and why" onChange={(event) => setHint(event.target.value)} />
        </label>
        <Choice name="how far back" value={days} options={[1, 7, 30].map((each) => [each, counted(each, "day")])} onChoose={(next) => put("days", next)} />
      </div>
      {hint.trim() !== "" && <Suggested hint={hint.trim()} />}
      <Answered query={agents}>{(found) => <AgentTable agents={found.agents} records={records.data} />}</Answered>
      {agents.data && <Unasked agents={agents.data.agents} />}
      <Answered query={agents}>{(found) => <Probes agents={found.agents} />}</Answered>
      {records.data && <Failures records={records.data} />}
    </>
  );
}

function Suggested({ hint }: { hint: string }) {
  const asked = useDeferredValue(hint);
  const query = useSuggestions(asked);
  return (
    <Panel title="Suggested" note="nothing is started; each point has its reason">
      <Answered query={query}>
        {(found) => (
          <ol className="steps">
            {found.suggestions.map((each) => (
              <li key={each.id}>
                <code className="num">{each.score.toFixed(2)}</code>
                <span>
                  <b>{each.id}</b> {each.reasons.join("; ")}
                </span>
              </li>
            ))}
          </ol>
        )}
      </Answered>
    </Panel>
  );
}

function AgentTable({ agents, records }: { agents: readonly ConfiguredAgent[]; records: TrackRecords | undefined }) {
  const of = new Map(records?.stats.map((each) => [each.name, each]));
  return (
    <Panel title="Agents" note="success counts evidence, not claims; the line is its 95 % interval, from 0 to 100 %">
      <Table
        name="agents"
        columns={["agent", "for", "success, of attempts", "interval", "verified", "p50", "p95", "cost", "lane"]}
        numbers={[4, 5, 6, 7]}
        rows={agents.map((agent) => {
          const record = of.get(agent.id);
          return [
            <>
              <b>{agent.id}</b>
              <div className="note">{agent.runtime}</div>
            </>,
            <>
              {agent.description} <span className="note">{agent.tags.join(", ")}</span>
            </>,
            record?.success ? <RateWords rate={record.success} /> : "none ended",
            <Interval rate={record?.success ?? null} />,
            record?.verified ? `${record.verified.count} of ${record.verified.n}` : record ? "no contract" : "–",
            record?.took ? span(record.took.p50Ms) : "–",
            record?.took ? span(record.took.p95Ms) : "–",
            <>
              {record === undefined ? "–" : <Usd usd={record.costUsd} />}
              {record !== undefined && record.costUsd !== null && record.costKnown < record.attemptCount && (
                <div className="note">
                  by {record.costKnown} of {record.attemptCount}
                </div>
              )}
            </>,
            <>
              {agent.limits.lane} <span className="note">{counted(agent.limits.laneSlots, "slot")}</span>
            </>,
          ];
        })}
      />
      <p className="note body">1 of 1 is 21–100 %: one lucky run says little. Cancelled attempts and refusals of a provider are in no rate.</p>
    </Panel>
  );
}

function RateWords({ rate }: { rate: Rate }) {
  return (
    <>
      {Math.round(rate.rate * 100)} % of {rate.n}
    </>
  );
}

/** A dot with whiskers from 0 to 100 per cent; dotted where nothing ended. */
function Interval({ rate }: { rate: Rate | null }) {
  const at = (value: number) => `${4 + value * 92}%`;
  const words = rate === null ? "none ended" : `${Math.round(rate.low * 100)} to ${Math.round(rate.high * 100)} per cent`;
  return (
    <svg className="interval" width="120" height="14" role="img" aria-label={words}>
      <line x1="4%" x2="96%" y1="7" y2="7" className={rate === null ? "none" : "grid"} />
      {rate !== null && (
        <>
          <line x1={at(rate.low)} x2={at(rate.high)} y1="7" y2="7" className="whisker" />
          <line x1={at(rate.low)} x2={at(rate.low)} y1="3" y2="11" className="whisker" />
          <line x1={at(rate.high)} x2={at(rate.high)} y1="3" y2="11" className="whisker" />
          <circle cx={at(rate.rate)} cy="7" r="3.5" className="dot" />
        </>
      )}
    </svg>
  );
}

const refresh = () => void queries.invalidateQueries({ queryKey: ["still", "/v1/agents"] });

/** What somebody answered "for this agent", and does not want to be asked again. */
function Unasked({ agents }: { agents: readonly ConfiguredAgent[] }) {
  const revoke = async (id: string, call: string) => {
    try {
      await remove(`/v1/agents/${encodeURIComponent(id)}/allowed-calls/${encodeURIComponent(call)}`);
      toldDone(`${id} asks again`);
    } catch (error) {
      toldFailed("It is still allowed", reason(error));
    }
    refresh();
  };
  const calls = agents.flatMap(({ id, allowedCalls }) => allowedCalls.map((call) => [id, call] as const));
  if (calls.length === 0) return null;
  return (
    <Panel title="Used without asking" note="in every run of the agent, until you revoke it">
      <ul className="body links">
        {calls.map(([id, call]) => (
          <li key={`${id} ${call}`}>
            <b>{id}</b> <Said text={call} mono />{" "}
            <Act className="plain" onClick={() => void revoke(id, call)}>Revoke</Act>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const VERDICTS: Record<string, string> = { proven: "ok", broken: "error", open: "waiting" };

function Probes({ agents }: { agents: readonly ConfiguredAgent[] }) {
  return (
    <Panel title="What was probed" note="does the program keep to what its runtime says?">
      <ul className="list checks">
        {agents.map((agent) => (
          <li key={agent.id}>
            {agent.probe === null ? <WordChip word="waiting" text="not probed" /> : <WordChip word="ok" text="probed" />}
            <div>
              <b>{agent.id}</b>
              {agent.probe === null ? (
                <p className="note">{abilitiesOf(agent)}</p>
              ) : (
                agent.probe.claims.map((each) => (
                  <p key={each.name} className="note">
                    <WordChip word={VERDICTS[each.verdict] ?? "waiting"} text={each.verdict} /> {each.name}: <Said text={each.detail} />
                  </p>
                ))
              )}
            </div>
            <span className="note">
              {agent.probe !== null && (
                <>
                  {agent.probe.version} · <Ago at={agent.probe.probedAt} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
      {agents.length === 0 ? (
        <Empty title="No agents that can work" />
      ) : (
        <div className="body">
          <Command text="subagents doctor --probe AGENT" />
        </div>
      )}
    </Panel>
  );
}

function abilitiesOf({ abilities }: ConfiguredAgent): string {
  if (abilities === null) return "it cannot work as configured";
  const able = [
    abilities.steer && "takes messages while it works",
    abilities.resume && "continues its session",
    abilities.interrupt && "its turn can be ended",
    abilities.scopeTools && "its tools can be narrowed",
    abilities.usage && "reports tokens or cost",
    abilities.survivesDaemon && "outlives the daemon",
  ].filter(Boolean);
  return able.length === 0 ? "its runtime claims nothing" : `its runtime says: ${able.join(", ")}`;
}

function Failures({ records }: { records: TrackRecords }) {
  const failed = records.stats.filter((each) => Object.keys(each.reasons).length > 0);
  if (failed.length === 0) return null;
  return (
    <Panel title="Why attempts failed">
      <dl className="facts">
        {failed.map((each) => (
          <div key={each.name}>
            <dt>{each.name}</dt>
            <dd>
              {Object.entries(each.reasons)
                .map(([word, number]) => `${number} ${word}`)
                .join(", ")}
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
