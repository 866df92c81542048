import { expect, test } from "vitest";
import { proposed, taskIn } from "./box";

test("a task stands behind the sign, all else is looked for", () => {
  expect([" > fix it ", ">", "a > b"].map(taskIn)).toEqual(["fix it", "", null]);
});

test("the agent of the last run comes first only among those that fit as well", () => {
  const agents = [{ id: "a", score: 1 }, { id: "b", score: 1 }, { id: "c", score: 0 }];
  expect(["b", "c", null].map((last) => proposed(agents, last)[0]?.id)).toEqual(["b", "a", "a"]);
});
