// Sessions that asked for runs: of the newest runs, and of older ones when somebody wants them.
import { Link } from "wouter";
import { useOlderRuns } from "../api/queries";
import type { RunRow } from "../api/types";
import { Heading } from "../components/heading";
import { Table } from "../components/panel";
import { sessionAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Empty } from "../components/states";
import { Ago } from "../components/when";
import { counted } from "../text/amounts";
import { isEnded } from "../text/states";

export default function SessionsPage() {
  const query = useOlderRuns();
  return (
    <>
      <Heading title="Sessions" />
      <Answered query={query}>
        {({ pages }) => {
          const runs = pages.flatMap((page) => page.runs);
          const { total, totalIsBound } = pages[0] ?? { total: null, totalIsBound: false };
          const sessions = [...grouped(runs)];
          return sessions.length === 0 ? (
            <Empty title="No session asked for anything yet">
              <p>A shell, an agent or a browser has one once it starts a run: <Link href="/new">here</Link>, for instance.</p>
            </Empty>
          ) : (
            <>
              <div className="box">
                <Table
                  name="sessions"
                  columns={["session", "runs", "active", "newest"]}
                  numbers={[1, 2, 3]}
                  rows={sessions.map(([session, own]) => [
                    <Link href={sessionAt(session)}>
                      <Said text={session} mono />
                    </Link>,
                    counted(own.length, "run"),
                    own.filter((run) => !isEnded(run)).length,
                    <Ago at={own[0]?.createdAt} />,
                  ])}
                />
              </div>
              {query.hasNextPage && (
                <p className="note">
                  Of the newest {runs.length.toLocaleString("en")} of {(total ?? runs.length).toLocaleString("en")}
                  {totalIsBound && " or more"} runs.{" "}
                  <button type="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                    Look at older ones
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Answered>
    </>
  );
}

function grouped(runs: readonly RunRow[]): Map<string, RunRow[]> {
  const found = new Map<string, RunRow[]>();
  for (const run of runs) found.set(run.requester, [...(found.get(run.requester) ?? []), run]);
  return found;
}
