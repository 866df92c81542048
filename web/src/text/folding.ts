// Siblings in the same state become one, so that three failures among a thousand runs are seen.
import { stateOf, type Standing } from "./states";

export type Group<N> = { word: string; nodes: N[] };

const FOLD_FROM = 6;
/** Whoever looks at a tree looks for these. */
const NEVER = new Set(["you", "bad"]);

/** Nodes in order, with six or more of one state as one group at the place of the first.
 *
 * @param mayFold Only of these: folding one with runs below it would hide them.
 */
export function folded<N extends Standing>(nodes: readonly N[], mayFold: (node: N) => boolean, from = FOLD_FROM): Group<N>[] {
  const groups = new Map<string, Group<N>>();
  const found: Group<N>[] = [];
  for (const node of nodes) {
    const { word, hue } = stateOf({ ...node, verdict: null });
    const group = groups.get(word);
    if (NEVER.has(hue) || !mayFold(node)) found.push({ word, nodes: [node] });
    else if (group === undefined) {
      const first = { word, nodes: [node] };
      groups.set(word, first);
      found.push(first);
    } else group.nodes.push(node);
  }
  return found.flatMap((group) =>
    group.nodes.length >= from ? [group] : group.nodes.map((node) => ({ word: group.word, nodes: [node] })),
  );
}
