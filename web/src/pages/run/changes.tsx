// What a run changed in its worktree.
import { useDiff } from "../../api/queries";
import type { RunDetail } from "../../api/types";
import { Facts, Panel, Table } from "../../components/panel";
import { Said } from "../../components/said";
import { Answered, Command, Empty } from "../../components/states";
import { bytes, counted } from "../../text/amounts";
import { word } from "../../text/shell";

export function ChangesTab({ run }: { run: RunDetail }) {
  const workspace = run.workspace;
  const changes = workspace?.changes ?? run.verification?.changes ?? null;
  if (workspace === null && changes === null) {
    return (
      <Empty title="It has no worktree">
        <p>It works in its directory as it is, so nobody knows which changes are its own. With a worktree of its own:</p>
        <Command text="subagents run TASK --isolation worktree" />
      </Empty>
    );
  }
  return (
    <>
      {workspace !== null && (
        <Panel title="Worktree">
          <Facts
            facts={[
              ["path", <Said key="path" text={workspace.path} mono />],
              ["branch", <Said key="branch" text={workspace.branch} mono />],
              ["of", <Said key="of" text={workspace.repository} mono />],
              ["kept", workspace.kept === null ? "until the run is over" : workspace.kept ? "yes" : "no, it was removed"],
            ]}
          />
        </Panel>
      )}
      {changes === null ? (
        <Empty title="Not known yet">
          <p>What changed is looked at when an attempt has ended.</p>
        </Empty>
      ) : changes.error !== null ? (
        <Empty title="It could not be looked at">
          <p>
            <Said text={changes.error} />
          </p>
        </Empty>
      ) : (
        <Panel title="Changes" note={changes.summary} right={changes.changed.length < changes.files && `${changes.changed.length} of ${counted(changes.files, "file")}`}>
          {changes.outOfScope.length > 0 && (
            <p className="body you">Not named by its contract: {changes.outOfScope.map((each) => <Said key={each} text={`${each} `} mono />)}</p>
          )}
          <Table
            name="changed files"
            columns={["file", "what", "added", "removed"]}
            numbers={[2, 3]}
            rows={changes.changed.map((each) => [
              <Said text={each.path} mono />,
              <span className={each.kind === "deleted" ? "bad" : ""}>{each.kind}</span>,
              each.insertions === null ? "binary" : `+${each.insertions}`,
              each.deletions === null ? "binary" : `−${each.deletions}`,
            ])}
          />
          {workspace !== null && <Diff id={run.runId} />}
          {workspace !== null && (
            <div className="body">
              <Command text={`git -C ${word(workspace.repository)} diff HEAD...${word(workspace.branch)}`} />
            </div>
          )}
        </Panel>
      )}
    </>
  );
}

const LINES_SHOWN = 2_000;

/** What changed, line by line, as git writes it. */
function Diff({ id }: { id: string }) {
  const query = useDiff(id);
  return (
    <Answered query={query}>
      {(found) => {
        const lines = found.text.split("\n");
        return (
          <>
            <Lines lines={lines.map((text) => ({ sign: "", text }))} />
            {(found.isCut || lines.length > LINES_SHOWN) && (
              <p className="note body">
                {Math.min(lines.length, LINES_SHOWN).toLocaleString("en")} of {lines.length.toLocaleString("en")} lines
                {found.isCut && `, the beginning of ${bytes(found.textBytes)}`}; git shows all of it.
              </p>
            )}
          </>
        );
      }}
    </Answered>
  );
}

/** Lines of a diff, each with its sign before it or in it. */
export function Lines({ lines }: { lines: readonly { sign: string; text: string }[] }) {
  return (
    <div className="diff" tabIndex={0} role="group" aria-label="diff">
      {lines.slice(0, LINES_SHOWN).map(({ sign, text }, at) => (
        <div key={at} className={kindOf(sign === "" ? text : sign)}>
          <Said text={sign + text || " "} mono />
        </div>
      ))}
    </div>
  );
}

function kindOf(line: string): string {
  if (/^(diff|index|---|\+\+\+|new file|deleted file)/.test(line)) return "head";
  if (line.startsWith("@@")) return "hunk";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}
