import { expect, test } from "vitest";
import { waitOf, waitsIn } from "./waits";

test("of each time the most that waited at once, and the longest", () => {
  const [s, hour] = [1_000, 3_600_000];
  const waits = [[0, 10 * s], [5 * s, 20 * s], [20 * s, hour + 5 * s], [30 * s, 30 * s + 500]] as const;
  expect(waitsIn([0, hour, 2 * hour], waits)).toEqual([
    { most: 2, longestMs: hour - 15 * s },
    { most: 1, longestMs: hour - 15 * s },
    { most: 0, longestMs: 0 },
  ]);
});

test("a run that never began waited until its end, or waits still", () => {
  const createdAt = "1970-01-01T00:00:01Z";
  expect(waitOf(9_000)({ createdAt, startedAt: null, endedAt: "1970-01-01T00:00:04Z" })).toEqual([1_000, 4_000]);
  expect(waitOf(9_000)({ createdAt, startedAt: null, endedAt: null })).toEqual([1_000, 9_000]);
});
