import { expect, test } from "vitest";
import { byCause } from "./failures";

const item = (runId: string, text: string, at: number, kind = "failed") => ({ kind, runId, label: runId, text, sinceAt: `2026-01-01T00:00:0${at}Z` });
const row = (agentId: string, error: string | null = null) => ({ agentId, planId: null, outcome: { reason: error === null ? "exit_code" : "dependency_failed", error } });

test("the same error of an agent is one cause, what depended on it is below it, and the newest comes first", () => {
  const rows = new Map([
    ...["a", "b", "e"].map((id) => [id, row("x")] as const),
    ["c", row("y")],
    ["d", row("y", "Dependency run r-n error: Dependency run b error: disk full")],
  ] as const);
  const items = [item("a", "disk full", 1), item("b", "disk full", 2), item("c", "disk full", 3), item("e", "no key", 5), item("d", "…", 6), item("c", "gone", 4, "unread"), item("a", "gone", 4, "unread")];
  const found = byCause(items, rows).map((each) => [each.items, each.dependants].map((some) => some.map(({ runId }) => runId)));
  expect(found).toEqual([[["b", "a"], ["d"]], [["e"], []], [["c"], []], [["a"], []], [["c"], []]]);
  const codes = byCause([item("a", "exit code 1", 1), item("b", "exit code 1", 2)], rows);
  expect(codes).toHaveLength(2);
  // Its root was read by somebody: then it stands for itself.
  expect(byCause([item("d", "…", 1)], rows)).toEqual([{ items: [item("d", "…", 1)], dependants: [] }]);
});
