import { expect, test } from "vitest";
import { countedStates, inWords, isPlan } from "./plan-rows";

test("a plan is what its steps are, the first one counted with the others, in words that people are shown", () => {
  const found = countedStates({ error: 2, timeout: 1, ok: 4, queued: 1, blocked: 1 }, "ok");
  expect(inWords(found)).toBe("1 needs you · 1 waiting · 3 failed · 5 ok");
  expect(countedStates(undefined, "working")).toEqual([["working", 1]]);
  const plans = [{ runId: "r-1", planId: "r-1" }, { runId: "r-2", planId: "r-1" }, { runId: "r-2", planId: null }];
  expect(plans.map(isPlan)).toEqual([true, false, false]);
});
