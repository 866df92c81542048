// The run and all below it; siblings in the same state are folded, those that need a look never.
import { useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { useTree } from "../../api/queries";
import type { RunDetail, RunNode } from "../../api/types";
import { StateChip, WordChip } from "../../components/chip";
import { BudgetBar, Dollars } from "../../components/cost";
import { Panel } from "../../components/panel";
import { runAt, treeAt } from "../../components/routes";
import { Cell, RowScope, useRow } from "../../components/rows";
import { useRowsInView } from "../../components/rows-in-view";
import { RunLink } from "../../components/run-link";
import { Said } from "../../components/said";
import { Spacer } from "../../components/spacer";
import { Answered, copy } from "../../components/states";
import { counted } from "../../text/amounts";
import { span } from "../../text/times";
import { treeRows, type TreeRow } from "../../text/tree-rows";

const ROW_PX = 30;
const INDENT_PX = 19;

export function TreeTab({ run }: { run: RunDetail }) {
  const query = useTree(run.runId);
  return (
    <Answered query={query}>
      {(root) => (
        <Panel title="Tree" note={counted(size(root), "run")} right={<Link href={treeAt(run.runId)}>as a graph</Link>}>
          <RowScope>
            <Tree root={root} />
          </RowScope>
        </Panel>
      )}
    </Answered>
  );
}

function size(node: RunNode): number {
  const { truncated } = node;
  const leftOut = truncated === null ? 0 : truncated.total - truncated.shown;
  return 1 + leftOut + node.children.reduce((sum, each) => sum + size(each), 0);
}

const keyOf = (row: TreeRow<RunNode>) => row.key;

function Tree({ root }: { root: RunNode }) {
  // Rows by key: runs that were folded, and groups that were unfolded.
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => treeRows(root, turned), [root, turned]);
  const { box, refOf, shown, before, after } = useRowsInView<TreeRow<RunNode>, HTMLDivElement>(rows, keyOf, ROW_PX);
  const turn = (key: string) => {
    const next = new Set(turned);
    if (!next.delete(key)) next.add(key);
    setTurned(next);
  };
  return (
    <div className="tree" role="treegrid" aria-label="tree" aria-rowcount={rows.length}>
      <div ref={box} role="rowgroup">
        <Spacer height={before} />
        {shown.map(({ index, key, row }) => (
          <Row key={key} refOf={refOf} index={index} row={row} onTurn={() => turn(row.key)} />
        ))}
        <Spacer height={after} />
      </div>
    </div>
  );
}

type RowProps = { refOf: (element: Element | null) => void; index: number; row: TreeRow<RunNode>; onTurn: () => void };

function Row({ refOf, index, row, onTurn }: RowProps) {
  const [, navigate] = useLocation();
  const isOpen = row.kind === "run" ? row.isOpen : row.kind === "group" ? false : null;
  const to = row.kind === "run" ? runAt(row.node.runId) : null;
  const open = () => (to === null ? isOpen !== null && onTurn() : navigate(to));
  const keys = useRow(row.key, index === 0, {
    Enter: open,
    o: open,
    ArrowRight: () => isOpen === false && onTurn(),
    ArrowLeft: () => isOpen === true && onTurn(),
    ...(row.kind === "run" ? { y: () => void copy(row.node.runId) } : {}),
  });
  return (
    <div
      ref={refOf}
      data-index={index}
      role="row"
      className="node"
      aria-level={row.level + 1}
      aria-rowindex={index + 1}
      {...(isOpen === null ? {} : { "aria-expanded": isOpen })}
      {...keys}
    >
      <Indent level={row.level} />
      {row.kind === "run" ? <RunCells node={row.node} isOpen={row.isOpen} onTurn={onTurn} /> : row.kind === "group" ? (
        <>
          <Cell of="twist" />
          <Cell><WordChip word={row.word} text={`${row.nodes.length} ${row.word}`} /></Cell>
          <Cell><button type="button" className="plain" tabIndex={-1} onClick={onTurn}>unfold</button></Cell>
          <Cell of="why note">{row.nodes.slice(0, 4).map((each) => each.label).join(", ")} …</Cell>
        </>
      ) : (
        <Cell of="note">{counted(row.number, "more run")}: a tree shows at most 1,000</Cell>
      )}
    </div>
  );
}

/** As far from the left as it is below the root, with a line for each level. */
function Indent({ level }: { level: number }) {
  if (level === 0) return null;
  const lines = Array.from({ length: level }, (_, at) => `M${at * INDENT_PX + 12.5} 0V${ROW_PX}`).join("");
  return (
    <svg className="indent" width={level * INDENT_PX} height={ROW_PX} aria-hidden="true">
      <path d={lines} />
    </svg>
  );
}

function RunCells({ node, isOpen, onTurn }: { node: RunNode; isOpen: boolean | null; onTurn: () => void }) {
  return (
    <>
      <Cell of="twist">
        {isOpen !== null && (
          <button type="button" className="twist" tabIndex={-1} aria-label={isOpen ? "fold" : "unfold"} onClick={onTurn}>
            {isOpen ? "▾" : "▸"}
          </button>
        )}
      </Cell>
      <Cell><StateChip run={node} /></Cell>
      <Cell of="label"><RunLink run={node} tabIndex={-1} /></Cell>
      <Cell of="note">{node.agentId}</Cell>
      <Cell of="why"><Said text={node.why ?? ""} /></Cell>
      {node.budget !== null && (
        <Cell><BudgetBar budget={node.budget} /></Cell>
      )}
      <Cell of="note num">{node.elapsedMs === null ? "–" : span(node.elapsedMs)}</Cell>
      <Cell of="note num"><Dollars usage={node.subtreeUsage ?? node.usage} /></Cell>
    </>
  );
}
