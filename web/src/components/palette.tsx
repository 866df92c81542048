// One box: it finds anything by its words, and starts a task that is written behind `>`.
import { lazy, Suspense, useDeferredValue, useId, useRef, useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { role } from "../api/login";
import { useAgents, useLastRun, usePlans, useRuns, useSchedules, useSuggestions } from "../api/queries";
import { useDraft } from "../live/drafts";
import { preferences } from "../live/preferences";
import { useStore } from "../live/store";
import { namedLike, proposed, STARTS, taskIn } from "../text/box";
import { asked } from "../text/filter";
import { Boundary } from "./boundary";
import { StateChip } from "./chip";
import { Dialog } from "./dialog";
import { Form } from "./form";
import { PAGES, planAt, runAt, runsAt, searchAt } from "./routes";
import { Said } from "./said";
import { Skeleton } from "./states";

const StartTask = lazy(() => import("./start-task"));

/** A line of what was found; `go` is what Enter does. */
type Choice = { key: string; what: ReactNode; name: string; note?: string | undefined; go: () => void };

const RUNS_SHOWN = 12;
/** So many of each kind but runs. */
const SHOWN = 4;
const AGENTS_SHOWN = 4;

export function Palette({ onClose }: { onClose: () => void }) {
  const [kept, keep] = useDraft("box");
  const [words, setWords] = useState(kept);
  const [at, setAt] = useState(0);
  const start = useRef<() => void>(() => {});
  const isViewer = useStore(role) === "viewer";
  const id = useId();
  const task = isViewer ? null : taskIn(words);
  const write = (text: string) => {
    setWords(text);
    setAt(0);
    keep(taskIn(text) === null ? "" : text);
  };
  const found = useFound(task === null ? words.trim() : "", onClose, isViewer ? null : (text) => write(`${STARTS} ${text}`));
  const agents = useAgentsFor(task, () => start.current());
  const choices = task === null ? found : agents;
  const chosen = Math.min(at, choices.length - 1);
  const label = isViewer ? "what to find" : `what to find, or ${STARTS} and a task to start`;
  return (
    <Dialog title="Find anything, start a task" onClose={onClose} className="palette" hideTitle>
      <Form onSend={() => choices[chosen]?.go()}>
        <input
          autoFocus
          role="combobox"
          aria-label={label}
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={choices.length > 0 ? `${id}-${chosen}` : undefined}
          placeholder={label}
          autoComplete="off"
          value={words}
          onFocus={(event) => event.target.select()}
          onChange={(event) => write(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, choices.length - 1));
            else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
            else return;
            event.preventDefault();
          }}
        />
      </Form>
      <ul id={id} role="listbox" aria-label={task === null ? "found" : "who does it"}>
        {choices.map((choice, index) => (
          <li
            key={choice.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => (task === null ? choice.go() : setAt(index))}
          >
            {choice.what}
            <Said text={choice.name} />
            {choice.note && (
              <span className="note">
                <Said text={choice.note} />
              </span>
            )}
          </li>
        ))}
      </ul>
      {task !== null && (
        <Boundary>
          <Suspense fallback={<Skeleton />}>
            <StartTask task={task} agent={agents[chosen]?.name ?? ""} start={start} done={() => (keep(""), onClose())} leave={onClose} />
          </Suspense>
        </Boundary>
      )}
    </Dialog>
  );
}

const kind = (word: string) => <span className="note">{word}</span>;

/** What fits the words, pages first; then where else they can be looked for, or done. */
function useFound(words: string, close: () => void, toTask: ((text: string) => void) | null): Choice[] {
  const [, navigate] = useLocation();
  const { saved } = useStore(preferences);
  const looked = useDeferredValue(words);
  const runs = useRuns({ ...asked(looked), limit: RUNS_SHOWN, archived: looked !== "" }).data?.runs ?? [];
  const [plans, schedules, agents] = [usePlans(), useSchedules(), useAgents()];
  const to = (address: string) => () => (close(), navigate(address));
  const pages = [...PAGES.filter(({ isClosed }) => !isClosed || toTask !== null), { path: "/search", name: "Search transcripts" }, ...(toTask === null ? [] : [{ path: "/new", name: "New run" }])];
  const all = words === "" ? 0 : SHOWN;
  return [
    ...namedLike(pages, (each) => each.name, words, pages.length).map((page) => ({ key: page.path, what: kind("page"), name: page.name, go: to(page.path) })),
    ...namedLike(saved, (each) => each.name, words, all).map((each) => ({ key: `filter/${each.name}`, what: kind("filter"), name: each.name, go: to(`/runs?${each.search}`) })),
    ...namedLike(plans.data?.plans ?? [], (each) => each.name ?? each.planId, words, all).map((plan) => ({ key: `plan/${plan.planId}`, what: kind("plan"), name: plan.name ?? plan.planId, note: plan.status, go: to(planAt(plan.planId)) })),
    ...namedLike(schedules.data?.schedules ?? [], (each) => each.name, words, all).map((each) => ({ key: each.scheduleId, what: kind("schedule"), name: each.name, note: each.words, go: to(runsAt(`tag:${each.tag}`)) })),
    ...namedLike(agents.data?.agents ?? [], (each) => each.id, words, all).map(({ id }) => ({ key: `agent/${id}`, what: kind("agent"), name: id, note: "its runs", go: to(runsAt(`agent:${id}`)) })),
    ...runs.map((run) => ({ key: run.runId, what: <StateChip run={run} />, name: run.label, note: run.agentId, go: to(runAt(run.runId)) })),
    ...(words === ""
      ? []
      : [
          { key: "fit", what: kind("all runs"), name: words, note: "as a filter", go: to(runsAt(words)) },
          { key: "search", what: kind("search"), name: words, note: "in transcripts", go: to(searchAt(words)) },
          ...(toTask === null ? [] : [{ key: "start", what: kind("start"), name: words, note: "as a task", go: () => toTask(words) }]),
        ]),
  ];
}

/** Who could do the task, whoever fits first; each of them starts what is shown below. */
function useAgentsFor(task: string | null, start: () => void): Choice[] {
  const hint = useDeferredValue(task ?? "");
  const found = useSuggestions(hint).data?.suggestions ?? [];
  const last = useLastRun().data?.runs[0]?.agentId ?? null;
  if (task === null) return [];
  return proposed(found, last)
    .slice(0, AGENTS_SHOWN)
    .map((each) => ({ key: each.id, what: kind("agent"), name: each.id, note: each.reasons[0] ?? each.description ?? "", go: start }));
}
