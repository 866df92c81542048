import { lazy, Suspense } from "react";
import { Link, Route, Switch } from "wouter";
import type { Problem } from "./api/client";
import { Dialogs } from "./components/dialogs";
import { LoggedOut } from "./components/logged-out";
import { Peek } from "./components/peek";
import { Shell } from "./components/shell";
import { Skeleton } from "./components/states";
import { Toasts } from "./components/toasts";
import { link } from "./live/live";
import { useStorePart } from "./live/store";
import { NowPage } from "./pages/now";

// Each page comes when it is opened; Now is what most come for, and comes with the rest.
const importRuns = () => import("./pages/runs");
const RunsPage = lazy(importRuns);
const RunPage = lazy(() => import("./pages/run"));
const PlansPage = lazy(() => import("./pages/plans"));
const PlanPage = lazy(() => import("./pages/plan"));
const SchedulesPage = lazy(() => import("./pages/schedules"));
const SessionsPage = lazy(() => import("./pages/sessions"));
const SessionPage = lazy(() => import("./pages/session"));
const InboxPage = lazy(() => import("./pages/inbox"));
const ComparePage = lazy(() => import("./pages/compare"));
const AgentsPage = lazy(() => import("./pages/agents"));
const CostPage = lazy(() => import("./pages/cost"));
const AlertsPage = lazy(() => import("./pages/alerts"));
const SystemPage = lazy(() => import("./pages/system"));
const SearchPage = lazy(() => import("./pages/search"));
const NewRunPage = lazy(() => import("./pages/new-run"));

// Whoever comes for the list waits for the login and for its code at the same time.
if (location.pathname.endsWith("/runs")) void importRuns();

export function App({ problem }: { problem: Problem | null }) {
  const state = useStorePart(link, (now) => now.state);
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
            <Route path="/runs/:id/:tab?">{({ id, tab }) => <RunPage key={id} id={id} tab={tab ?? "overview"} />}</Route>
            <Route path="/plans" component={PlansPage} />
            <Route path="/plans/:id">{({ id }) => <PlanPage key={id} id={id} />}</Route>
            <Route path="/trees/:id">{({ id }) => <PlanPage key={id} id={id} isTree />}</Route>
            <Route path="/schedules" component={SchedulesPage} />
            <Route path="/sessions" component={SessionsPage} />
            <Route path="/sessions/:key">{({ key }) => <SessionPage key={key} session={key} />}</Route>
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
