import { expect, test } from "vitest";
import { bytes, cached, count, dollars } from "./amounts";

test("an amount below a cent is not shown as nothing", () => {
  expect([0, 0.004, 0.31, 1234.5].map(dollars)).toEqual(["$0.00", "<$0.01", "$0.31", "$1,234.50"]);
});

test("counts and sizes have one decimal at most", () => {
  expect([980, 51_320, 999_960].map(count)).toEqual(["980", "51.3k", "1.0M"]);
  expect([23, 2_048, 33_000_000].map(bytes)).toEqual(["23 bytes", "2.0 KiB", "31 MiB"]);
});

test("what came from a cache is told where somebody reported it", () => {
  expect(cached(null)).toBeUndefined();
  expect(cached({ tokensCacheRead: null })).toBeUndefined();
  expect(cached({ tokensCacheRead: 1_200_000 })).toBe("and 1.2M from a cache");
});
