// A graph of runs made small enough to look at.
import { stateOf, type Hue, type Standing } from "./states";

export type Node = Standing & { runId: string; label: string; why: string | null };
export type Edge = { source: string; target: string; kind: string };
/** One run, or several in the same state with the same edges. */
export type Box = { id: string; word: string; nodes: Node[] };
export type Link = { source: string; target: string; kind: string; isWaitedOn: boolean };
export type Point = { x: number; y: number };
/** What is to be placed: the ids of boxes, and lines between them. */
export type Wanted = { boxes: string[]; links: { source: string; target: string }[] };
export type Placement = {
  width: number;
  height: number;
  /** The upper left corner of each box. */
  corners: Map<string, Point>;
  /** The way of each line, by `linkId`. */
  ways: Map<string, Point[]>;
};

/** From so many nodes on, all of one state between the same layers are one from the start. */
export const FOLD_BY_STATE = 300;
/** Above this a table says more. */
export const TABLE_ABOVE = 2_000;
export const BOX_WIDTH = 200;
export const BOX_HEIGHT = 48;
const FOLD_FROM = 3;
const NEVER: ReadonlySet<Hue> = new Set(["you", "bad"]);

/** Siblings with equal edges and state as one box; failures and questions stay by themselves.
 *
 * @param unfolded Boxes that somebody opened.
 */
export function foldedGraph(
  nodes: readonly Node[],
  edges: readonly Edge[],
  folds: boolean,
  unfolded: ReadonlySet<string> = new Set(),
): { boxes: Box[]; links: Link[] } {
  const byState = nodes.length > FOLD_BY_STATE;
  const near = neighbours(edges);
  const groups = new Map<string, Box>();
  for (const node of nodes) {
    const { word, hue } = stateOf({ ...node, verdict: null });
    const around = byState ? "" : (near.get(node.runId) ?? "");
    const key = !folds || NEVER.has(hue) ? node.runId : `${word}|${around}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { id: key, word, nodes: [node] });
    else group.nodes.push(node);
  }
  const boxes = [...groups.values()].flatMap((group) =>
    group.nodes.length >= FOLD_FROM && !unfolded.has(group.id)
      ? [group]
      : group.nodes.map((node) => ({ id: node.runId, word: group.word, nodes: [node] })),
  );
  const boxOf = new Map(boxes.flatMap((box) => box.nodes.map((node) => [node.runId, box] as const)));
  const links = new Map<string, Link>();
  for (const { source, target, kind } of edges) {
    const from = boxOf.get(source);
    const to = boxOf.get(target);
    if (from === undefined || to === undefined || from === to) continue;
    const isWaitedOn = kind === "waits" && from.nodes.some(isOpen) && to.nodes.some(isOpen);
    const link = { source: from.id, target: to.id, kind, isWaitedOn };
    links.set(linkId(link), link);
  }
  return { boxes, links: [...links.values()] };
}

export function linkId({ source, target }: { source: string; target: string }): string {
  return `${source}>${target}`;
}

function isOpen(node: Node): boolean {
  return node.outcome === null;
}

function neighbours(edges: readonly Edge[]): Map<string, string> {
  const found = new Map<string, string[]>();
  const add = (id: string, word: string) => found.set(id, [...(found.get(id) ?? []), word]);
  for (const { source, target } of edges) {
    add(source, `>${target}`);
    add(target, `<${source}`);
  }
  return new Map([...found].map(([id, words]) => [id, words.sort().join()]));
}

/** A smooth line through points. */
export function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let before = first;
  const parts = rest.map((point) => {
    const middle = (before.x + point.x) / 2;
    const part = `C${middle} ${before.y} ${middle} ${point.y} ${point.x} ${point.y}`;
    before = point;
    return part;
  });
  return `M${first.x} ${first.y}${parts.join("")}`;
}
