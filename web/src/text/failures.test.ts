import { expect, test } from "vitest";
import { folded } from "./failures";

const failed = (runId: string, text: string) => ({ kind: "failed", runId, text });

test("equal failures of a plan are one row, others stand alone", () => {
  const rows = new Map([
    ["a", { planId: "p" }],
    ["b", { planId: "p" }],
    ["c", { planId: "p" }],
    ["d", { planId: "q" }],
    ["e", { planId: null }],
    ["f", { planId: null }],
  ]);
  const items = [failed("a", "disk full"), failed("e", "disk full"), failed("b", "disk full"), failed("c", "no key"), failed("d", "disk full"), failed("f", "disk full")];

  expect(folded(items, rows).map((group) => group.map((each) => each.runId))).toEqual([["a", "b"], ["e"], ["c"], ["d"], ["f"]]);
  expect(folded([{ kind: "unread", runId: "a", text: "x" }, { kind: "unread", runId: "b", text: "x" }], rows)).toHaveLength(2);
});
