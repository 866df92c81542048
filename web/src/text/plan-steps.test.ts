import { expect, test } from "vitest";
import { checkedPlan } from "./plan-steps";

test("steps are shown in the order in which they can start", () => {
  const { layers, problems } = checkedPlan([
    { task: "c", label: "c", dependsOn: ["a", "b"] },
    { task: "a", label: "a" },
    { task: "b", label: "b", chainAfter: "a" },
  ]);
  expect(problems).toEqual([]);
  expect(layers.map((layer) => layer.map((each) => each.label))).toEqual([["a"], ["b"], ["c"]]);
});

test("a circle, a missing task and a doubled label are named", () => {
  const { problems } = checkedPlan([
    { task: "a", label: "a", dependsOn: ["b"] },
    { task: "b", label: "b", dependsOn: ["a"] },
    { label: "c" },
    { task: "c", label: "c" },
  ]);
  expect(problems).toEqual(["step 3 has no task", "two steps have the same label", "these wait for each other: a, b"]);
});
