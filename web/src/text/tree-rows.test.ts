import { expect, test } from "vitest";
import { treeRows } from "./tree-rows";

type Leaf = { runId: string; outcome: { status: string }; children: Leaf[]; truncated: { shown: number; total: number } | null };
const run = (runId: string, status: string, children: Leaf[] = [], truncated: Leaf["truncated"] = null): Leaf => ({
  runId,
  outcome: { status },
  children,
  truncated,
});
const lead = run("lead", "ok", [run("failed", "error"), ...Array.from({ length: 7 }, (_, at) => run(`ok-${at}`, "ok"))], { shown: 8, total: 11 });
const root = run("root", "ok", [lead, run("other", "cancelled")]);
const read = (turned: string[] = []) =>
  treeRows(root, new Set(turned)).map((row) => `${"  ".repeat(row.level)}${row.kind === "run" ? row.node.runId : row.kind === "group" ? `${row.nodes.length} ${row.word}` : `${row.number} more`}`);

test("a tree is read from the top to the left-out ones, with equal siblings as one row", () => {
  expect(read()).toEqual(["root", "  lead", "    failed", "    7 ok", "    3 more", "  other"]);
});

test("what somebody turned is the other way round: a run is folded, a group is not", () => {
  expect(read(["lead"])).toEqual(["root", "  lead", "  other"]);
  expect(read(["lead/ok"]).slice(2, 5)).toEqual(["    failed", "    ok-0", "    ok-1"]);
});
