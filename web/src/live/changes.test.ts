import { expect, test } from "vitest";
import { changed, dueIn, FLUSH_MS, NOTHING, PAUSE_MS_MAX, pauseAfter, type Happening } from "./changes";

const event = (seq: number, runId: string): Happening => ({
  kind: "event",
  event: { seq, runId, event: "run", label: runId },
});

test("many events of a run are one change of it", () => {
  const after = [event(1, "a"), event(2, "a"), event(2, "b")].reduce(changed, NOTHING);
  expect(after.seq).toBe(2);
  expect([...after.runs]).toEqual(["a", "b"]);
});

test("an event that came before is no news", () => {
  const after = [event(5, "a"), { kind: "flushed" } as const, event(4, "a")].reduce(changed, NOTHING);
  expect(after.runs.size).toBe(0);
  expect(after.seq).toBe(5);
});

test("after a reconnect and after a reset everything is looked at again", () => {
  expect(changed(NOTHING, { kind: "connected" }).all).toBe(true);
  expect(changed(changed(NOTHING, event(9, "a")), { kind: "reset", seq: 3 })).toMatchObject({ seq: 3, all: true });
});

test("a change that no answer has yet is due once more, with what came meanwhile", () => {
  const asked = changed(NOTHING, event(1, "a"));
  const after = [{ kind: "flushed" } as const, event(2, "b"), { kind: "late", of: asked } as const].reduce(changed, asked);
  expect([[...after.runs].sort(), after.seq, after.all]).toEqual([["a", "b"], 2, false]);
});

test("the first change is due at once, the next a second later", () => {
  const after = changed(NOTHING, event(1, "a"));
  expect(dueIn(NOTHING, 0, 0, FLUSH_MS)).toBeNull();
  expect(dueIn(after, 10_000, 0, FLUSH_MS)).toBe(0);
  expect(dueIn(after, 10_450, 9_600, FLUSH_MS)).toBe(550); // the same second, whenever they looked
  expect(dueIn(after, 10_450, 10_400, FLUSH_MS)).toBe(550);
});

test("a page that waits long for answers, or that nobody sees, asks more seldom", () => {
  expect(pauseAfter(20, false)).toBe(FLUSH_MS);
  expect(pauseAfter(400, false)).toBe(2_000);
  expect(pauseAfter(60_000, false)).toBe(PAUSE_MS_MAX);
  expect(pauseAfter(20, true)).toBe(PAUSE_MS_MAX);
  expect(dueIn(changed(NOTHING, { kind: "connected" }), 9_000, 8_500, PAUSE_MS_MAX)).toBe(500);
});
