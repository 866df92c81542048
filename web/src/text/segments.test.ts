import { expect, test } from "vitest";
import { mostly, segmentsOf } from "./segments";

const EVENTS = [
  { at: 0, phase: "queued" },
  { at: 10, phase: "running" },
  { at: 15, phase: "running" },
  { at: 100, phase: "verifying" },
  { at: 110, phase: "completed" },
];

test("phases become pieces, and events within one do not cut it", () => {
  expect(segmentsOf(EVENTS, [], 200)).toEqual([
    { from: 0, to: 10, kind: "wait" },
    { from: 10, to: 100, kind: "work" },
    { from: 100, to: 110, kind: "check" },
  ]);
});

test("while a question is open the worker waits for a person", () => {
  const found = segmentsOf(EVENTS.slice(0, 3), [{ from: 20, to: null }], 200);
  expect(found.slice(1)).toEqual([
    { from: 10, to: 20, kind: "work" },
    { from: 20, to: 200, kind: "person" },
  ]);
  expect(mostly(found)).toEqual({ kind: "person", length: 180, of: 200 });
});
