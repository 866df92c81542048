import { expect, test } from "vitest";
import { inUnits, parts } from "./hits";

test("characters of two units are counted as one by who searches", () => {
  expect(inUnits("ä😀bb", [[2, 4]])).toEqual([[3, 5]]);
  expect(inUnits("plain", [[1, 2]])).toEqual([[1, 2]]);
});

test("a text is cut at hits, also at those that begin before or end behind it", () => {
  expect(parts("abcdef", 10, [[8, 11], [12, 14], [15, 20]])).toEqual([
    { text: "a", isHit: true },
    { text: "b", isHit: false },
    { text: "cd", isHit: true },
    { text: "e", isHit: false },
    { text: "f", isHit: true },
  ]);
  expect(parts("abc", 0, [])).toEqual([{ text: "abc", isHit: false }]);
});
