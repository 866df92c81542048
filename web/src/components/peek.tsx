// All of a row, where the row shows a part: the whole why, ids, absolute times.
import { useLocation } from "wouter";
import type { RunRow } from "../api/types";
import { Store, useStore } from "../live/store";
import { absolute, ms } from "../text/times";
import { StateChip } from "./chip";
import { Cost, Tokens } from "./cost";
import { Dialog } from "./dialog";
import { Facts } from "./panel";
import { runAt } from "./routes";
import { Said } from "./said";
import { CopyButton } from "./states";
import { plain } from "../text/marks";

const peeked = new Store<RunRow | null>(null);

export function openPeek(run: RunRow): void {
  peeked.set(run);
}

export function Peek() {
  const run = useStore(peeked);
  const [, navigate] = useLocation();
  if (run === null) return null;
  const at = (time: string | null) => (time === null ? null : absolute(ms(time) ?? 0));
  return (
    <Dialog title={plain(run.label)} onClose={() => peeked.set(null)} className="peek">
      <p>
        <StateChip run={run} /> <Said text={run.why ?? ""} />
      </p>
      <Facts
        facts={[
          ["run", <code key="id">{run.runId}</code>],
          ["task", run.task && <Said key="task" text={run.task} mono />],
          ["agent", run.agentId],
          ["model", run.model],
          ["requester", <Said key="requester" text={run.requester} mono />],
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
        <button
          type="button"
          className="primary"
          onClick={() => {
            peeked.set(null);
            navigate(runAt(run.runId));
          }}
        >
          Open
        </button>
        <CopyButton text={run.runId} word="Copy id" />
      </footer>
    </Dialog>
  );
}
