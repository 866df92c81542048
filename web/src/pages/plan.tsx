// A plan, or a tree of runs, as a graph; or as a table when there is too much for a graph.
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { GRACE, reason, retryPlan } from "../api/actions";
import { get, post, remove, runPath } from "../api/client";
import { useGraph } from "../api/queries";
import type { Graph, RunDetail } from "../api/types";
import { Act } from "../components/act";
import { StateChip, WordChip } from "../components/chip";
import { Heading } from "../components/heading";
import { RunGraph } from "../components/run-graph";
import { planAt } from "../components/routes";
import { useRowsInView } from "../components/rows-in-view";
import { RunLink } from "../components/run-link";
import { Said } from "../components/said";
import { Spacer } from "../components/spacer";
import { Answered } from "../components/states";
import { Took } from "../components/when";
import { keepDraft } from "../live/drafts";
import { toldDone, toldFailed, toldPlanned } from "../live/toasts";
import { counted } from "../text/amounts";
import { FOLD_BY_STATE, TABLE_ABOVE } from "../text/graph";
import { plain } from "../text/marks";
import { isEnded, named } from "../text/states";

export default function PlanPage({ id, isTree = false }: { id: string; isTree?: boolean }) {
  const query = useGraph(isTree ? { tree: id } : { plan: id });
  const name = query.data?.name ?? query.data?.nodes[0]?.label ?? id;
  return (
    <>
      <Heading title={`${isTree ? "Tree" : "Plan"}: ${plain(name)}`} note={query.data && counted(query.data.runs, "run")} />
      <Answered query={query}>{(graph) => <Shown graph={graph} id={id} isTree={isTree} />}</Answered>
    </>
  );
}

function Shown({ graph, id, isTree }: { graph: Graph; id: string; isTree: boolean }) {
  const [folds, setFolds] = useState(true);
  const isTooLarge = graph.runs > TABLE_ABOVE;
  // A graph of a phone's width shows nothing; the table does.
  const [isTable, setTable] = useState(isTooLarge || window.innerWidth <= 640);
  return (
    <>
      <div className="filters">
        <span className="counts">
          {Object.entries(graph.states).map(([word, number]) => (
            <WordChip key={word} word={word} text={`${number} ${named(word).word}`} />
          ))}
        </span>
        <span className="right filters">
          {!isTree && <PlanActions graph={graph} id={id} />}
          {!isTable && (
            <label className="check button">
              <input type="checkbox" checked={folds} onChange={(event) => setFolds(event.target.checked)} /> fold by state
            </label>
          )}
          <button type="button" aria-pressed={isTable} disabled={isTooLarge} onClick={() => setTable(!isTable)}>
            {isTable ? "Graph" : "Table"}
          </button>
        </span>
      </div>
      {isTooLarge && <p className="note">More than {TABLE_ABOVE.toLocaleString("en")} runs: a table shows more than a graph.</p>}
      {!isTable && graph.runs > FOLD_BY_STATE && <p className="note">More than {FOLD_BY_STATE} runs: folded by state.</p>}
      {graph.truncated && (
        <p className="note">
          {graph.truncated.shown.toLocaleString("en")} of {graph.truncated.total.toLocaleString("en")} runs are shown.{" "}
          <Link href={`/runs?${new URLSearchParams({ q: `${isTree ? "tree" : "plan"}:${id}`, flat: "1" })}`}>all of them</Link>
        </p>
      )}
      {isTable ? <Steps graph={graph} /> : <RunGraph graph={graph} folds={folds} />}
    </>
  );
}

/** Of a plan with more steps the form would be a file that nobody edits in a field. */
const COPIED_MAX = 50;

function PlanActions({ graph, id }: { graph: Graph; id: string }) {
  const [, navigate] = useLocation();
  const active = graph.nodes.filter((each) => !isEnded(each)).length;
  const stop = async () => {
    try {
      await post(`/v1/plans/${encodeURIComponent(id)}/cancel`, { after: GRACE });
      toldPlanned(`${counted(active, "run")} of this plan will be cancelled in 5 s`, "Keep them", () => void keepAll());
    } catch (error) {
      toldFailed("The plan was not cancelled", reason(error));
    }
  };
  const keepAll = async () => {
    try {
      await remove(`/v1/plans/${encodeURIComponent(id)}/cancel`);
    } catch (error) {
      toldFailed("The plan was not kept", reason(error));
    }
  };
  const again = async () => {
    const found = await retryPlan(id);
    if (found !== null) navigate(planAt(found));
  };
  const asDraft = async () => {
    try {
      const steps = await Promise.all(graph.nodes.map((each) => get<RunDetail>(runPath(each.runId))));
      keepDraft("plan", JSON.stringify({ name: graph.name, specs: steps.map((each) => each.originalSpawnParams) }, null, 2));
      toldDone("Its steps are here as they were spawned; a budget of the plan as a whole is not among them");
      navigate("/new?plan=1");
    } catch (error) {
      toldFailed("Its steps could not be read", reason(error));
    }
  };
  return (
    <>
      {graph.nodes.length <= COPIED_MAX && !graph.truncated && <Act onClick={() => void asDraft()}>Use as a new plan</Act>}
      {active > 0 ? (
        <Act className="danger" onClick={() => void stop()}>
          Cancel {active}
        </Act>
      ) : (
        <Act onClick={() => void again()}>Retry what failed</Act>
      )}
    </>
  );
}

const ROW_PX = 34;
type Step = Graph["nodes"][number];
const keyOf = (step: Step) => step.runId;

function Steps({ graph }: { graph: Graph }) {
  const { box, refOf, shown, before, after } = useRowsInView<Step, HTMLUListElement>(graph.nodes, keyOf, ROW_PX);
  return (
    <ul ref={box} className="box lines">
      <Room height={before} />
      {shown.map(({ index, key, row: each }) => (
        <li key={key} ref={refOf} data-index={index} className="line need" aria-posinset={index + 1} aria-setsize={graph.nodes.length}>
          <StateChip run={each} />
          <span className="name">
            <RunLink run={each} className="label" />
            <span className="note">{each.agentId}</span>
          </span>
          <span className="why">
            <Said text={each.why} />
          </span>
          <span className="age num">{each.startedAt === null ? "–" : <Took from={each.startedAt} to={each.endedAt} />}</span>
          <span className="note num">{each.below !== null && `${counted(each.below.runs, "run")} below`}</span>
        </li>
      ))}
      <Room height={after} />
    </ul>
  );
}

function Room({ height }: { height: number }) {
  return (
    height > 0 && (
      <li aria-hidden="true">
        <Spacer height={height} />
      </li>
    )
  );
}
