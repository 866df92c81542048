// All of a row, where the row shows a part: the whole why, ids, absolute times;
// and what its worker asks, to be answered from any page.
import { useLocation } from "wouter";
import { useRun } from "../api/queries";
import { peeked } from "../live/notices";
import { useStore } from "../live/store";
import { absolute, ms } from "../text/times";
import { StateChip } from "./chip";
import { Cost, Tokens } from "./cost";
import { Dialog } from "./dialog";
import { Facts } from "./panel";
import { Questions } from "./question-card";
import { runAt } from "./routes";
import { Said } from "./said";
import { Answered, CopyButton } from "./states";
import { person, plain } from "../text/marks";

export function Peek() {
  const run = useStore(peeked);
  const close = () => peeked.set(null);
  return (
    run && (
      <Dialog title={plain(run.label)} onClose={close} className="peek">
        <Whole id={run.runId} close={close} />
      </Dialog>
    )
  );
}

function Whole({ id, close }: { id: string; close: () => void }) {
  const query = useRun(id);
  const run = query.data;
  const [, navigate] = useLocation();
  if (run === undefined) return <Answered query={query}>{() => null}</Answered>;
  const at = (time: string | null) => (time === null ? null : absolute(ms(time) ?? 0));
  return (
    <>
      <Questions requests={run.requests.filter((each) => each.status === "pending")} takesFocus />
      <p>
        <StateChip run={run} /> <Said text={run.why ?? ""} />
      </p>
      <Facts
        facts={[
          ["run", <code key="id">{run.runId}</code>],
          ["task", run.task && <Said key="task" text={run.task} mono />],
          ["agent", run.agentId],
          ["model", run.model],
          ["from", <Said key="from" text={person(run.requester)} />],
          ["directory", <Said key="directory" text={run.directory} mono />],
          ["tags", plain(run.tags.join(", "))],
          ["attempt", run.attempt === 0 ? "none yet" : run.attempt],
          ["spawned", at(run.createdAt)],
          ["began", at(run.startedAt)],
          ["ended", at(run.endedAt)],
          ["cost", <Cost key="cost" run={run} />],
          ["tokens", <Tokens key="tokens" run={run} />],
        ]}
      />
      <footer>
        <button type="button" className="primary" onClick={() => (close(), navigate(runAt(run.runId)))}>Open</button>
        <CopyButton text={run.runId} word="Copy id" />
      </footer>
    </>
  );
}
