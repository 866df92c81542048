import { lazy, Suspense, useEffect, useState, type ComponentType } from "react";
import { Link, Route, Switch } from "wouter";
import type { Problem } from "./api/client";
import { ForOperators } from "./components/act";
import { Dialogs } from "./components/dialogs";
import { Heading } from "./components/heading";
import { LoggedOut } from "./components/logged-out";
import { Peek } from "./components/peek";
import { Shell } from "./components/shell";
import { Empty, Skeleton } from "./components/states";
import { Toasts } from "./components/toasts";
import { partOf } from "./live/address";
import { link, queries } from "./live/live";
import { useStorePart } from "./live/store";
import { NowPage } from "./pages/now";

type Load<P> = () => Promise<{ default: ComponentType<P> }>;

/** Also what a page has only in part of it: a daemon of the next version has no more of this one's files. */
const loads: (() => Promise<unknown>)[] = [() => import("./components/start-task")];

/** A page that comes when it is opened, or was fetched before: then its click waits for nothing, where React lets a
 * fallback stand for 300 ms.
 */
function page<P extends object>(load: Load<P>): ComponentType<P> {
  let here: ComponentType<P> | null = null;
  const get = async () => {
    const found = await load();
    here = found.default;
    return found;
  };
  loads.push(get);
  const Late = lazy(get) as ComponentType<P>;
  return (props) => {
    const [Page] = useState(() => here ?? Late);
    return <Page {...props} />;
  };
}

/** A page that is not for viewers. */
function closed(title: string, Page: ComponentType): ComponentType {
  const instead = (
    <>
      <Heading title={title} />
      <Empty title="You are a viewer">
        <p>Here you see what runs do. For all else, open the page with a link that <code>subagents ui</code> prints.</p>
      </Empty>
    </>
  );
  return () => <ForOperators instead={instead}><Page /></ForOperators>;
}

async function fetchAll(): Promise<void> {
  try {
    for (const load of loads) await load();
  } catch {
    // The one that is opened says what is wrong.
  }
}

// Now is what most come for, and comes with the rest.
const importRuns = () => import("./pages/runs");
const RunsPage = page(importRuns);
const RunPage = page(() => import("./pages/run"));
const PlansPage = page(() => import("./pages/plans"));
const PlanPage = page(() => import("./pages/plan"));
const SchedulesPage = page(() => import("./pages/schedules"));
const SessionsPage = page(() => import("./pages/sessions"));
const SessionPage = page(() => import("./pages/session"));
const InboxPage = page(() => import("./pages/inbox"));
const ComparePage = page(() => import("./pages/compare"));
const AgentsPage = closed("Agents", page(() => import("./pages/agents")));
const CostPage = closed("Cost", page(() => import("./pages/cost")));
const AlertsPage = page(() => import("./pages/alerts"));
const SystemPage = closed("System", page(() => import("./pages/system")));
const SearchPage = page(() => import("./pages/search"));
const NewRunPage = closed("New run", page(() => import("./pages/new-run")));

// Whoever comes for the list waits for the login and for its code at the same time.
if (location.pathname.endsWith("/runs")) void importRuns();

/** What is shown first comes first. */
const IDLE_MS = 1_000;

export function App({ problem }: { problem: Problem | null }) {
  const state = useStorePart(link, (now) => now.state);
  useEffect(() => {
    const ahead = () => void (queries.isFetching() > 0 ? setTimeout(ahead, IDLE_MS) : fetchAll());
    if (state === "live") setTimeout(ahead, IDLE_MS);
  }, [state]);
  if (problem !== null) return <LoggedOut problem={problem} />;
  if (state === "loggedOut") return <LoggedOut problem={null} />;
  // Until the stream says where it is: what changes between an answer and it would be missed.
  if (state === "connecting") return <Skeleton />;
  return (
    <>
      <Shell>
        <Suspense fallback={<Skeleton />}>
          <Switch>
            <Route path="/" component={NowPage} />
            <Route path="/runs" component={RunsPage} />
            <Route path="/runs/:id/:tab?">{({ id, tab }) => <RunPage key={id} id={partOf(id)} tab={tab ?? "overview"} />}</Route>
            <Route path="/plans" component={PlansPage} />
            <Route path="/plans/:id">{({ id }) => <PlanPage key={id} id={partOf(id)} />}</Route>
            <Route path="/trees/:id">{({ id }) => <PlanPage key={id} id={partOf(id)} isTree />}</Route>
            <Route path="/schedules" component={SchedulesPage} />
            <Route path="/sessions" component={SessionsPage} />
            <Route path="/sessions/:key">{({ key }) => <SessionPage key={key} session={partOf(key)} />}</Route>
            <Route path="/inbox" component={InboxPage} />
            <Route path="/compare" component={ComparePage} />
            <Route path="/agents" component={AgentsPage} />
            <Route path="/cost" component={CostPage} />
            <Route path="/alerts" component={AlertsPage} />
            <Route path="/system" component={SystemPage} />
            <Route path="/search" component={SearchPage} />
            <Route path="/new" component={NewRunPage} />
            <Route>
              <h1>There is no such page</h1>
              <p>
                <Link href="/">Now</Link> says what goes on.
              </p>
            </Route>
          </Switch>
        </Suspense>
      </Shell>
      <Peek />
      <Dialogs />
      <Toasts />
    </>
  );
}
