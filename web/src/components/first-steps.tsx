// A home without a run: what this is, and what can be done here, now.
import { useState } from "react";
import { reason } from "../api/actions";
import { post } from "../api/client";
import { useVersion } from "../api/queries";
import type { PlanReceipt } from "../api/types";
import { keepDraft } from "../live/drafts";
import { toldDone, toldFailed } from "../live/toasts";
import { STARTS } from "../text/box";
import { Act, ForOperators } from "./act";
import { openDialog } from "./dialogs";
import { Command, Empty } from "./states";

const FIRST_TASK = `${STARTS} echo hello`;

export function FirstSteps() {
  const version = useVersion().data;
  const [isStarting, setStarting] = useState(false);
  const demo = async () => {
    setStarting(true);
    try {
      await post<PlanReceipt>("/v1/demo");
      toldDone("The demo has begun: one of its four runs will ask you something");
    } catch (error) {
      toldFailed("The demo was not started", reason(error));
      setStarting(false);
    }
  };
  const task = () => {
    keepDraft("box", FIRST_TASK);
    openDialog("palette");
  };
  return (
    <div className="box first">
      <Empty title="No runs yet">
        <p>
          This page shows tasks that are handed over to programs on this machine: agents, scripts, commands. Each goes on
          when this page, your shell or the daemon ends, what it promised is checked before you hear “ok”, and what needs
          you stands here, on top.
        </p>
        <ForOperators instead={<p>You are a viewer: what others start shows up here.</p>}>
          <dl className="facts">
            <div>
              <dt>
                <Act className="primary" disabled={isStarting} onClick={() => void demo()}>
                  {isStarting ? "starting …" : "Run the demo here"}
                </Act>
              </dt>
              <dd>
                Four small workers look at the source of subagents itself, in a new temporary directory. Ten seconds, no
                model, no key; one fails its check and is tried again, one asks you.
              </dd>
            </div>
            <div>
              <dt>
                <Act hint="Ctrl K" onClick={task}>Start a task</Act>
              </dt>
              <dd>
                You see what would start before it does. From a shell it is <Command text="subagents run 'echo hello'" />
              </dd>
            </div>
          </dl>
        </ForOperators>
        {version?.degraded && <p className="note">New runs are not accepted: {version.degraded}</p>}
      </Empty>
    </div>
  );
}
