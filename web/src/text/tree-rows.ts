// A tree as the rows of a list, in the order in which they are read.
import { folded } from "./folding";
import type { Standing } from "./states";

type Branch<N> = Standing & { runId: string; children: readonly N[]; truncated: { shown: number; total: number } | null };

/** A run, several siblings in one state, or how many more there are. */
export type TreeRow<N> = { key: string; level: number } & (
  | { kind: "run"; node: N; isOpen: boolean | null }
  | { kind: "group"; word: string; nodes: readonly N[] }
  | { kind: "more"; number: number }
);

/** The run and what is below it.
 *
 * @param turned Keys of rows that are not as they were at first: a run's children are shown then,
 *   and a group is one row.
 */
export function treeRows<N extends Branch<N>>(root: N, turned: ReadonlySet<string>): TreeRow<N>[] {
  const rows: TreeRow<N>[] = [];
  const add = (node: N, level: number): void => {
    const { runId, children, truncated } = node;
    const isOpen = children.length === 0 ? null : !turned.has(runId);
    rows.push({ kind: "run", key: runId, level, node, isOpen });
    if (isOpen !== true) return;
    for (const { word, nodes } of folded(children, (each) => each.children.length === 0)) {
      const key = `${runId}/${word}`;
      if (nodes.length === 1 || turned.has(key)) nodes.forEach((each) => add(each, level + 1));
      else rows.push({ kind: "group", key, level: level + 1, word, nodes });
    }
    const number = truncated === null ? 0 : truncated.total - truncated.shown;
    if (number > 0) rows.push({ kind: "more", key: `${runId}/more`, level: level + 1, number });
  };
  add(root, 0);
  return rows;
}
