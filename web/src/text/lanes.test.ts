import { expect, test } from "vitest";
import { rowsOf } from "./lanes";

test("what overlaps is in another row, what does not shares one", () => {
  const spans = [
    { from: 0, to: 10 },
    { from: 5, to: 8 },
    { from: 10, to: 12 },
  ];
  expect(rowsOf(spans)).toEqual([[spans[0], spans[2]], [spans[1]]]);
});
