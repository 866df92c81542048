import { expect, test } from "vitest";
import { folded } from "./folding";

const ended = (status: string) => ({ outcome: { status } });

test("many of one state are one group, a failure among them stays by itself", () => {
  const nodes = [...Array(9).fill(ended("ok")), ended("error"), ...Array(3).fill(ended("cancelled"))];
  expect(folded(nodes, () => true).map((each) => [each.word, each.nodes.length])).toEqual([
    ["ok", 9],
    ["failed", 1],
    ["cancelled", 1],
    ["cancelled", 1],
    ["cancelled", 1],
  ]);
});
