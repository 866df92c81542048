import { expect, test } from "vitest";
import { alertWords, withoutSign } from "./alerts";

test("a pushed line is told without its sign and its label", () => {
  expect(withoutSign("[subagent:flaky-cart] 🔁 3 consecutive Bash failures")).toBe("3 consecutive Bash failures");
  expect(withoutSign("⚠️ No progress for 5 minutes")).toBe("No progress for 5 minutes");
  expect(withoutSign("Drop the column?")).toBe("Drop the column?");
});

test("a run without a budget has none that it used", () => {
  expect(alertWords({ event: "budget_alert", costUsd: 5, budgetUsd: null })).toBe("$5.00 spent");
  expect(alertWords({ event: "budget_alert", costUsd: 4.12, budgetUsd: 5 })).toBe("$4.12 of $5.00 used");
});
