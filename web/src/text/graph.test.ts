import { expect, test } from "vitest";
import { foldedGraph, type Edge, type Node } from "./graph";
import { placed } from "./layout";

const node = (runId: string, status: string | null): Node => ({
  ...{ runId, label: runId, why: null, runStatus: "waiting" },
  outcome: status === null ? null : { status },
});
const shards = [1, 2, 3, 4, 5].map((each) => node(`s${each}`, each === 5 ? "error" : "ok"));
const nodes = [node("list", "ok"), ...shards, node("merge", null)];
const edges: Edge[] = shards.flatMap(({ runId }) => [
  { source: "list", target: runId, kind: "waits" },
  { source: runId, target: "merge", kind: "waits" },
]);

test("siblings of one state with the same edges are one box, a failure stays by itself", () => {
  const { boxes, links } = foldedGraph(nodes, edges, true);
  expect(boxes.map((each) => [each.word, each.nodes.length])).toEqual([
    ["ok", 1],
    ["ok", 4],
    ["failed", 1],
    ["waiting", 1],
  ]);
  expect(links).toHaveLength(4);
});

test("unfolded it has every run and edge, in layers from left to right", () => {
  const { boxes, links } = foldedGraph(nodes, edges, false);
  const { corners, ways } = placed({ boxes: boxes.map((each) => each.id), links });
  expect(corners.size).toBe(7);
  expect(ways.size).toBe(10);
  const x = (id: string) => corners.get(id)?.x ?? NaN;
  expect(x("list")).toBeLessThan(x("s1"));
  expect(x("s1")).toBeLessThan(x("merge"));
});

test("three hundred and more are folded by state alone", () => {
  const many = Array.from({ length: 400 }, (_, at) => node(`n${at}`, "ok"));
  expect(foldedGraph(many, [], true).boxes).toHaveLength(1);
});
