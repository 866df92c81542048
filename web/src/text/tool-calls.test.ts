import { expect, test } from "vitest";
import { callsOf } from "./tool-calls";

const line = (seq: number, ts: number, text: string, type = "tool") => ({ seq, ts, type, text, attempt: 1 });
const used = (at: number, tokens: number | null, costUsd: number | null = null) => ({ at, attempt: 1, tokens, costUsd });

test("begin and end are one call, also of two of the same tool that go on at once", () => {
  const lines = [line(1, 0, "▶ Bash\nmake"), line(2, 1_000, "▶ Bash\nls"), line(3, 4_000, "❌ Bash (exit 2)\nmake\n→ no rule"), line(4, 5_000, "✅ Bash\nls")];
  expect(callsOf(lines, []).map(({ asked, from, to, isError }) => [asked, from, to, isError])).toEqual([
    ["make", 0, 4_000, true],
    ["ls", 1_000, 5_000, false],
  ]);
});

test("a call that only ended has the length that it was told of, or none", () => {
  const calls = callsOf([line(1, 90_000, "✅ Bash (1m 2s)\nx"), line(2, 91_000, "✅ Read (0.5s, exit 1)"), line(3, 92_000, "✅ Edit")], []);
  expect(calls.map(({ name, from }) => [name, from])).toEqual([["Bash", 28_000], ["Read", 90_500], ["Edit", null]]);
});

test("what nobody told of is unknown and not 0, and totals count once", () => {
  const lines = [1, 2, 3].flatMap((at) => [line(2 * at, at * 10, `▶ T${at}`), line(2 * at + 1, at * 10 + 5, `✅ T${at}`)]);
  const calls = callsOf(lines, [used(12, 100, 0.5), used(31, 130)]);
  expect(calls.map(({ tokens, costUsd }) => [tokens, costUsd])).toEqual([[100, 0.5], [null, null], [30, null]]);
});

test("words of a worker are no call", () => {
  expect(callsOf([line(1, 0, "✅ Bash (1.0s)", "text"), line(2, 0, "attempt 1 reported complete")], [])).toEqual([]);
});
