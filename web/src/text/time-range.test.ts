import { expect, test } from "vitest";
import { boundsOf, fromField, toField } from "./time-range";

test("days begin at midnight of this clock, and an address keeps times that everybody reads the same", () => {
  const now = new Date(2026, 2, 1, 13, 30);
  const [today, yesterday] = [new Date(2026, 2, 1).toISOString(), new Date(2026, 1, 28).toISOString()];
  expect(boundsOf("today", now)).toEqual({ since: today });
  expect(boundsOf("yesterday", now)).toEqual({ since: yesterday, until: today });
  expect(boundsOf("1h", now)).toEqual({ since: "1h" });
  expect(boundsOf("", now)).toEqual({});
  expect(boundsOf(`${yesterday}/`, now)).toEqual({ since: yesterday });
  expect(boundsOf(`/${today}`, now)).toEqual({ until: today });
  expect(fromField(toField(today))).toBe(today);
  expect([toField(""), toField("no time"), fromField("")]).toEqual(["", "", ""]);
});
