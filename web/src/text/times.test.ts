import { expect, test } from "vitest";
import { ago, ahead, clock, span } from "./times";

test("ages are said in their largest unit", () => {
  const words = [0, 9_000, 240_000, 7_200_000, 3 * 86_400_000].map((age) => ago(0, age));
  expect(words).toEqual(["now", "9 s ago", "4 min ago", "2 h ago", "3 d ago"]);
});

test("a daemon whose clock is ahead says now, not a negative age", () => {
  expect(ago(5_000, 0)).toBe("now");
});

test("lengths have two units from a minute on", () => {
  expect([200, 12_000, 247_000, 7_800_000, 180_000_000].map(span)).toEqual([
    "0.2 s",
    "12 s",
    "4 m 07 s",
    "2 h 10 m",
    "2 d 2 h",
  ]);
});

test("what lies ahead has its clock time and how long that is", () => {
  const at = Date.now() + 20 * 60_000 + 500;
  expect(ahead(at, Date.now())).toBe(`${clock(at)}, in 20 min`);
});
