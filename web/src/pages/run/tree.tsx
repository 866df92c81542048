// The run and all below it; siblings in the same state are folded, those that need a look never.
import { useState } from "react";
import { Link } from "wouter";
import { useTree } from "../../api/queries";
import type { RunDetail, RunNode } from "../../api/types";
import { StateChip, WordChip } from "../../components/chip";
import { BudgetBar, Dollars } from "../../components/cost";
import { Panel } from "../../components/panel";
import { runAt, treeAt } from "../../components/routes";
import { Said } from "../../components/said";
import { Answered } from "../../components/states";
import { counted } from "../../text/amounts";
import { folded } from "../../text/folding";
import { span } from "../../text/times";

export function TreeTab({ run }: { run: RunDetail }) {
  const query = useTree(run.runId);
  return (
    <Answered query={query}>
      {(root) => (
        <Panel title="Tree" note={counted(size(root), "run")} right={<Link href={treeAt(run.runId)}>as a graph</Link>}>
          <ul className="tree">
            <Node node={root} />
          </ul>
        </Panel>
      )}
    </Answered>
  );
}

function leftOut({ truncated }: RunNode): number {
  return truncated === null ? 0 : truncated.total - truncated.shown;
}

function size(node: RunNode): number {
  return 1 + leftOut(node) + node.children.reduce((sum, each) => sum + size(each), 0);
}

function Node({ node }: { node: RunNode }) {
  const [isOpen, setOpen] = useState(true);
  const has = node.children.length > 0;
  return (
    <li>
      <div className="node">
        {has ? (
          <button type="button" className="twist" aria-expanded={isOpen} aria-label={isOpen ? "fold" : "unfold"} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "▾" : "▸"}
          </button>
        ) : (
          <span className="twist" />
        )}
        <StateChip run={node} />
        <Link href={runAt(node.runId)} className="label">
          <Said text={node.label} />
        </Link>
        <span className="note">{node.agentId}</span>
        <span className="why">
          <Said text={node.why ?? ""} />
        </span>
        {node.budget !== null && <BudgetBar budget={node.budget} />}
        <span className="note num">{node.elapsedMs === null ? "–" : span(node.elapsedMs)}</span>
        <span className="note num">
          <Dollars usage={node.subtreeUsage ?? node.usage} />
        </span>
      </div>
      {has && isOpen && (
        <ul>
          <Children nodes={node.children} />
          {leftOut(node) > 0 && <li className="note">{counted(leftOut(node), "more run")}: a tree shows at most 1,000</li>}
        </ul>
      )}
    </li>
  );
}

function Children({ nodes }: { nodes: readonly RunNode[] }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  return folded(nodes, (each) => each.children.length === 0).map((group) =>
    group.nodes.length === 1 || opened.has(group.word) ? (
      group.nodes.map((each) => <Node key={each.runId} node={each} />)
    ) : (
      <li key={group.word}>
        <div className="node">
          <span className="twist" />
          <WordChip word={group.word} text={`${group.nodes.length} ${group.word}`} />
          <button type="button" className="plain" onClick={() => setOpened(new Set(opened).add(group.word))}>
            unfold
          </button>
          <span className="why note">
            {group.nodes.slice(0, 4).map((each) => each.label).join(", ")} …
          </span>
        </div>
      </li>
    ),
  );
}
