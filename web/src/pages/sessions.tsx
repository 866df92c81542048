// Sessions that asked for runs, from the newest runs.
import { Link } from "wouter";
import { useRuns } from "../api/queries";
import type { RunRow } from "../api/types";
import { Heading } from "../components/heading";
import { TableBox } from "../components/panel";
import { sessionAt } from "../components/routes";
import { Answered, Empty } from "../components/states";
import { Ago } from "../components/when";
import { counted } from "../text/amounts";
import { isEnded } from "../text/states";

const LOOKED_AT = 1_000;

export default function SessionsPage() {
  const query = useRuns({ limit: LOOKED_AT });
  return (
    <>
      <Heading title="Sessions" note={`that asked for the newest ${LOOKED_AT.toLocaleString("en")} runs`} />
      <Answered query={query}>
        {(found) => {
          const sessions = [...grouped(found.runs)];
          return sessions.length === 0 ? (
            <Empty title="No session asked for anything yet" />
          ) : (
            <div className="box"><TableBox name="sessions">
                <thead>
                  <tr>
                    <th scope="col">session</th>
                    <th scope="col" className="num">
                      runs
                    </th>
                    <th scope="col" className="num">
                      active
                    </th>
                    <th scope="col" className="num">
                      newest
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {sessions.map(([session, runs]) => (
                    <tr key={session}>
                      <td>
                        <Link href={sessionAt(session)}>
                          <code>{session}</code>
                        </Link>
                      </td>
                      <td className="num">{counted(runs.length, "run")}</td>
                      <td className="num">{runs.filter((run) => !isEnded(run)).length}</td>
                      <td className="num">
                        <Ago at={runs[0]?.createdAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </TableBox></div>
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
